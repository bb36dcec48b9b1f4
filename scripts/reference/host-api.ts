import type * as v from 'valibot'
import type { Route } from '../../kernel/plugin.js'
import { CONSENTABLE, MARKETPLACE_CONSENTS } from '../../plugins/delivery/extensions/consent/grants.js'
import { provisions } from '../../plugins/delivery/extensions/manifest/manifest.js'
import { hostMethods } from '../../plugins/delivery/extensions/manifest/permissions.js'
import { StateParams } from '../../plugins/delivery/extensions/storage/params.js'
import { Answer, PROTOCOL_VERSIONS } from '../../plugins/delivery/subprocess-host/handshake.js'
import { SecretParams, SnapshotParams } from '../../plugins/delivery/subprocess-host/host-api.js'
import { RPC_CODES } from '../../plugins/delivery/subprocess-host/rpc-error.js'
import { SubscribeParams, UnsubscribeParams } from '../../plugins/delivery/subprocess-host/session-feed.js'
import { inTree } from '../../plugins/index.js'
import { DeliveryReportParams, IngestParams, ReportParams } from '../../plugins/reach/bridges/processes/schemas.js'
import { jsonOf, type Member, membersOf } from './json-schema.js'
import { code, page, table } from './markdown.js'

const routes = new Map(
  inTree.flatMap(({ surface }) => (surface.routes ?? []).map(route => [`${route.method} ${route.path}`, route])),
)
/** Methods without a route: description and parameters. */
const own: Readonly<Record<string, readonly [about: string, parameters: v.GenericSchema]>> = {
  'resources/snapshot': ['Replace all records of a kind that belong to the extension', SnapshotParams],
  'sessions/subscribe': ['Get the events of a session as notifications `sessions/event`', SubscribeParams],
  'sessions/unsubscribe': ['End a subscription', UnsubscribeParams],
  'state/get': ['Read a stored value of the extension', StateParams.key],
  'state/put': ['Store a value under a key', StateParams.put],
  'state/delete': ['Delete a value', StateParams.key],
  'state/list': ['List the keys of the stored values of the extension', StateParams.list],
  'secrets/get': ['Read the current value of a secret in the manifest', SecretParams],
  'bridges/instances/report_state': ['Report the state of a bridge that the process manages', ReportParams],
  'bridges/messages/ingest': ['Pass an event of a platform to the daemon; replies once it is durable', IngestParams],
  'bridges/deliveries/report': [
    'Report that a message did not arrive although the platform had accepted it',
    DeliveryReportParams,
  ],
}

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
  const [what, schema] = own[method] ?? []
  if (what !== undefined && schema)
    return [head, `${what}. Consent ${code(String(consent))}.`, parameters(rowsOf(membersOf(jsonOf(schema))))].join(
      '\n\n',
    )
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
${code('[permissions] requires')} of its manifest names. An extension from a marketplace is granted methods of these consents:
${MARKETPLACE_CONSENTS.map(code).join(', ')}; and of ${CONSENTABLE.map(code).join(', ')} where the operator allows them by name
(${code('svc extension install --allow')}). [protocol.md](../protocol.md) describes the messages, limits and errors.`,
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
