import type { Route } from '../../kernel/plugin.js'
import { provisions } from '../../plugins/delivery/extensions/manifest/manifest.js'
import { hostMethods } from '../../plugins/delivery/extensions/manifest/permissions.js'
import { MARKETPLACE_CONSENTS } from '../../plugins/delivery/extensions/subprocess/grants.js'
import { Answer, PROTOCOL_VERSIONS } from '../../plugins/delivery/extensions/subprocess/handshake.js'
import { SnapshotParams } from '../../plugins/delivery/extensions/subprocess/host-api.js'
import { RPC_CODES } from '../../plugins/delivery/extensions/subprocess/rpc-error.js'
import { inTree } from '../../plugins/index.js'
import { jsonOf, type Member, membersOf } from './json-schema.js'
import { code, page, table } from './markdown.js'

const routes = new Map(
  inTree.flatMap(({ surface }) => (surface.routes ?? []).map(route => [`${route.method} ${route.path}`, route])),
)
const snapshot = 'resources/snapshot'

const rowsOf = (members: readonly Member[]) =>
  members.map(({ path, type, isRequired, fallback, description }) => [
    code(path),
    type,
    isRequired ? 'required' : fallback,
    description,
  ])
const parameters = (rows: string[][]) => table(['parameter', 'type', 'default', 'meaning'], rows)

function ofRoute({ path, query, body }: Route): string[][] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [code(name), 'text', 'required', ''])
  const rest = [query, body].flatMap(part => (part && 'kind' in part ? rowsOf(membersOf(jsonOf(part))) : []))
  return [...names, ...rest]
}

function section(method: string): string {
  const { consent, route } = hostMethods.get(method) ?? {}
  const found = route && routes.get(route)
  const head = `### ${method}`
  if (method === snapshot)
    return [
      head,
      `Replace all records that the extension has of a kind. Consent ${code(String(consent))}.`,
      parameters(rowsOf(membersOf(jsonOf(SnapshotParams)))),
    ].join('\n\n')
  if (!found) return ''
  const rows = ofRoute(found)
  const about = `${found.summary}. Consent ${code(String(consent))}; answers with the body of ${code(String(route))}.`
  return [head, about, rows.length === 0 ? 'No parameters.' : parameters(rows)].join('\n\n')
}

export function hostApiPage(): string {
  const all = [...hostMethods.keys()]
  const missing = all.filter(method => section(method) === '')
  const services = Object.entries(provisions).map(([provision, methods]) => [
    code(provision),
    methods.map(code).join(', '),
  ])
  const codes = Object.entries(RPC_CODES).map(([name, number]) => [String(number), code(name)])
  return page(
    'The host API',
    `A process of an extension calls these methods over its standard output, JSON-RPC 2.0, one message a line. It may call what
${code('[permissions] requires')} of its manifest names. An extension from a marketplace is granted methods of these consents alone:
${MARKETPLACE_CONSENTS.map(code).join(', ')}.`,
    `## Methods that the daemon calls

Every process implements ${code('initialize')}, ${code('health_check')} and ${code('shutdown')}, and those of what ${code('[capabilities] provides')} names. The protocol
version is ${PROTOCOL_VERSIONS.map(code).join(', ')}.`,
    table(['provides', 'methods'], services),
    `The answer to ${code('initialize')}:`,
    table(['member', 'type', 'default', 'meaning'], rowsOf(membersOf(jsonOf(Answer)))),
    `## Errors

${code('error.data.code')} is the stable name. A refusal by a route is ${code('request_failed')} with the code and status of the route in ${code('error.data')}.`,
    table(['error.code', 'error.data.code'], codes),
    `## Methods of the daemon`,
    ...all.map(section).filter(text => text !== ''),
    `## Methods without a subsystem

They can be declared and are answered with ${code('method_unavailable')}: ${missing.map(code).join(', ')}.`,
  )
}
