import { type ErrorEntry, type ErrorTable, errorsOf } from '../../kernel/contract/errors.js'
import * as kit from '../../kernel/kit/index.js'
import * as platform from '../../kernel/platform.js'
import * as kernel from '../../kernel/plugin.js'
import { inTree } from '../../plugins/index.js'
import { byName, code, page, table } from './markdown.js'

type Table = ErrorTable<Readonly<Record<string, ErrorEntry>>>
const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && errorsOf(value as Table) !== undefined

export function errorsPage(): string {
  const surfaces = inTree.flatMap(({ name, surface }) =>
    (surface.errors ?? []).map(errors => ({ owner: name, errors })),
  )
  const shown = new Set(surfaces.map(({ errors }) => errors))
  const tables = [
    ...surfaces,
    ...[kernel, platform, kit].flatMap(module =>
      Object.values<unknown>(module)
        .filter(isTable)
        .filter(errors => !shown.has(errors) && shown.add(errors))
        .map(errors => ({ owner: 'kernel', errors })),
    ),
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
