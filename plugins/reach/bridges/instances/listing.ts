import * as v from 'valibot'
import { Paging } from '../../../../kernel/kit/page.js'
import { type Actor, turn } from '../../../../kernel/plugin.js'
import type { BridgeHealth, ListBridgesQuery, ListBridgesReply } from '../../../../schemas/bridges.js'
import { BridgeInstanceKind } from '../api.js'
import type { K } from '../needs.js'
import { type Health, isWithin } from './health.js'
import { type InstanceRecord, type Instances, instanceOf } from './instances.js'
import { bridgeOf } from './wire.js'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200
/** Number of records to decode before yielding to the event loop. */
const WINDOW = 200

/** Sort key of a row: global first, then by name in human order, then by id. */
const Place = v.tuple([v.number(), v.string(), v.string()])
type Place = v.InferOutput<typeof Place>

/** Lists one page of instances with their health. The facets count all matches. */
export async function listBridges(
  { kernel, instances, health }: { readonly kernel: K; readonly instances: Instances; readonly health: Health },
  query: ListBridgesQuery,
  actor: Actor,
): Promise<ListBridgesReply> {
  const limit = Math.min(query.limit || DEFAULT_LIMIT, MAX_LIMIT)
  const paging = new Paging({ place: Place })
  const of = { actor, query: { ...query, sort: undefined } }
  const after = paging.after(of, query.cursor)
  const where = await health.where(query)
  const wanted = query.q?.trim().toLowerCase() ?? ''
  const platforms: Record<string, number> = {}
  const statuses = { auth_required: 0, degraded: 0, disabled: 0, error: 0, ready: 0, starting: 0 }
  const found: { readonly record: InstanceRecord; readonly position: Place }[] = []
  for await (const record of recordsOf(kernel)) {
    const { spec } = record
    if (!isWithin(record, where, actor)) continue
    if (
      wanted &&
      ![record.id, spec.display_name, spec.platform, spec.extension_name].some(text =>
        text.toLowerCase().includes(wanted),
      )
    )
      continue
    const { status } = instanceOf(record, instances.state(record.id))
    const isOfPlatform = !query.platform || spec.platform === query.platform
    const isOfStatus = !query.status || status === query.status
    // The facet of a value counts the rows that the list has with this value selected.
    if (isOfStatus) platforms[spec.platform] = (platforms[spec.platform] ?? 0) + 1
    if (isOfPlatform) statuses[status]++
    if (isOfPlatform && isOfStatus) found.push({ record, position: positionOf(record) })
  }
  found.sort((a, b) => compare(a.position, b.position))
  const rest = after ? found.filter(({ position }) => compare(position, after) > 0) : found
  const { rows, ...more } = paging.cut(of, rest, limit, ({ position }) => position)
  const bridges = rows.map(({ record }) => bridgeOf(record, instances.state(record.id)))
  const bridge_health: Record<string, BridgeHealth> = {}
  for (const { record } of rows) {
    const state = instances.state(record.id)
    bridge_health[record.id] = health.of(instanceOf(record, state), state)
  }
  return { bridges, bridge_health, facets: { platforms, statuses }, page: { limit, total: found.length, ...more } }
}

async function* recordsOf({ records }: K): AsyncGenerator<InstanceRecord> {
  const kind = BridgeInstanceKind
  let after: { readonly kind: string; readonly id: string } | undefined
  for (;;) {
    // List by name: a record that fails to decode must not end the list early.
    const heads = records.list({ kind: kind.name, limit: WINDOW, ...(after && { after }) })
    const last = heads.at(-1)
    if (!last) return
    yield* records.list({ kind, limit: WINDOW, ...(after && { after }) })
    after = { kind: kind.name, id: last.id }
    await turn()
  }
}

const positionOf = ({ id, scope, spec }: InstanceRecord): Place => [
  scope.kind === 'workspace' ? 1 : 0,
  spec.display_name.toLowerCase(),
  id,
]

function compare(a: Place, b: Place): number {
  for (const [n, value] of a.entries()) {
    const other = b[n] as typeof value
    if (value !== other) return value < other ? -1 : 1
  }
  return 0
}
