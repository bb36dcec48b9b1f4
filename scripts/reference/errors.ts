import { errorsOf } from '../../kernel/contract/errors.js'
import { FileErrors, KernelErrors } from '../../kernel/plugin.js'
import { inTree } from '../../plugins/index.js'
import { byName, code, page, table } from './markdown.js'

export function errorsPage(): string {
  const tables = [
    ...[KernelErrors, FileErrors].map(errors => ({ owner: 'kernel', errors })),
    ...inTree.flatMap(({ name, surface }) => (surface.errors ?? []).map(errors => ({ owner: name, errors }))),
  ]
  const rows = tables.flatMap(({ owner, errors }) =>
    Object.entries(errorsOf(errors)).map(([name, { status, message, next }]) => [
      code(name),
      String(status),
      owner,
      message,
      next ? code(next) : '',
    ]),
  )
  return page(
    'Error codes',
    `An error reply is ${code('{ "error": …, "code": …, "details": { "next": … } }')}. Codes never change; texts may name the value that
caused the error. The codes of an extension begin with its vendor, as in ${code('acme_workspace_kept')}.`,
    table(['code', 'status', 'plugin', 'message', 'next step'], rows.sort(byName(([name = '']) => name))),
  )
}
