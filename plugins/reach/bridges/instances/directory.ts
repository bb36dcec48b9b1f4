import { command } from '../../../../kernel/kit/commands/command-line.js'
import { cut, shown, UNSEEN } from '../../../../kernel/kit/text.js'
import { type Actor, iso, messageOf, within } from '../../../../kernel/plugin.js'
import {
  BridgeTarget,
  type ListBridgeTargetsQuery,
  type ListBridgeTargetsReply,
  type ResolveBridgeTargetReply,
} from '../../../../schemas/bridges.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import { finding } from '../../../desk/daemon/api.js'
import type { FoundTarget, SnapshotTarget } from '../api.js'
import type { K } from '../needs.js'
import { parseRoute, routeOf } from './addresses.js'
import type { Instances } from './instances.js'
import { targets } from './table.js'

const READ_MS = 30_000
/** Milliseconds for which the directory is considered current. */
const FRESH_MS = 6 * 3600_000
/** Rows read at once. */
const ROWS_MAX = 10_000
const LIST_MAX = 50
const NAME_MAX = 256
const CANDIDATES = 10
/** Milliseconds for which an unknown name is not looked up again. */
const RECENT_MS = 60_000
/** Number of steps in {@link Directory.resolve} that match a whole name. */
const WHOLE_NAME = 3

type Row = ReturnType<typeof targets.all>[number]

/** Rooms and people that platforms have named. A row stays even if a later read lacks it. */
export class Directory {
  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
  ) {}

  /** Reads the directory of a platform again; a failure is recorded and keeps the rows. */
  async refresh(id: string): Promise<void> {
    const { clock, db, log } = this.kernel
    const provider = this.instances.provider(id)
    if (!provider) return
    const limit = new AbortController()
    try {
      const found = await within(clock, READ_MS, provider.targets(id, limit.signal))
      const now = clock.now()
      const rows = found.slice(0, ROWS_MAX).flatMap(target => rowOf(target) ?? [])
      await db.tx(t => {
        if (!this.instances.state(id)) return
        for (const row of rows) targets.replace(t, { ...row, instanceId: id, lastSeenAt: now, updatedAt: now })
        this.instances.change(t, id, { refreshedAt: now })
      })
    } catch (error) {
      limit.abort()
      const message = this.instances.plain(`the directory of targets could not be read: ${messageOf(error)}`)
      log.warn(message, { bridge: id })
      await db.tx(t => this.instances.failed(t, id, message))
    }
  }

  /** @throws Fault `bridge_not_found` */
  list(id: string, { q = '', limit }: ListBridgeTargetsQuery, actor: Actor): ListBridgeTargetsReply {
    this.instances.found(id, actor)
    const { clock, db } = this.kernel
    const wanted = normalized(q)
    const rows = targets
      .all(db, { instanceId: id }, 'ORDER BY normalized, route')
      .filter(row => row.normalized.includes(wanted) || row.route.toLowerCase().includes(q.trim().toLowerCase()))
    const { refreshedAt } = this.instances.state(id) ?? {}
    return {
      bridge_id: id,
      targets: rows.slice(0, Math.min(limit || LIST_MAX, LIST_MAX)).map(wireOf),
      total: rows.length,
      cache_stale: refreshedAt === undefined || clock.now() - refreshedAt > FRESH_MS,
      last_successful_refresh_at: refreshedAt === undefined ? null : iso(refreshedAt),
      generated_at: iso(clock.now()),
    }
  }

  /**
   * Finds targets by their route, an id in it, their whole name, then a part of their name. The first step with matches
   * decides, even with several.
   */
  resolve(id: string, name: string): ResolveBridgeTargetReply {
    const rows = targets.all(this.kernel.db, { instanceId: id }, 'ORDER BY normalized, route')
    const text = normalized(name)
    const steps: readonly ((row: Row) => boolean)[] = [
      row => row.route === name,
      row => {
        const { peer_id, group_id, thread_id } = parseRoute(row.route) ?? {}
        return thread_id === undefined && (group_id ?? peer_id) === name
      },
      row =>
        row.normalized === text ||
        (row.qualifier !== undefined && normalized(`${row.displayName} ${row.qualifier}`) === text),
      row => text !== '' && row.normalized.includes(text),
    ]
    for (const [n, matches] of steps.entries()) {
      const found = rows.filter(matches)
      const [first] = found
      if (!first) continue
      const step = n + 1
      if (found.length === 1) return { result: { match: wireOf(first), ambiguous: false, step } }
      return {
        result: { match: null, candidates: found.slice(0, CANDIDATES).map(wireOf), ambiguous: true, step },
        diagnostic: this.#diagnostic(
          id,
          name,
          'bridge_target_ambiguous',
          `${found.length} targets have the name ${shown(name)}`,
        ),
      }
    }
    const isRoute = parseRoute(name) !== undefined
    const message = isRoute
      ? `the directory does not list the route ${shown(name)}; messages can still be sent to it`
      : `no target has the name ${shown(name)}`
    return {
      result: { match: null, candidates: this.#near(rows, text), ambiguous: false, step: steps.length },
      diagnostic: this.#diagnostic(id, name, 'bridge_target_unknown', message),
    }
  }

  /**
   * Finds a room or person by its whole name. An unknown name causes a new read of the directory, unless that was
   * recent.
   */
  async find(id: string, name: string): Promise<FoundTarget> {
    const found = this.#find(id, name)
    const { refreshedAt = 0 } = this.instances.state(id) ?? {}
    if ('route' in found || found.isAmbiguous || this.kernel.clock.now() - refreshedAt < RECENT_MS) return found
    await this.refresh(id)
    return this.#find(id, name)
  }

  #find(id: string, name: string): FoundTarget {
    const { result } = this.resolve(id, name)
    const { match, step, ambiguous, candidates = [] } = result
    if (match && step <= WHOLE_NAME) return { route: match.canonical_route, displayName: match.display_name }
    const near = match ? [match] : candidates
    const isAmbiguous = ambiguous && step <= WHOLE_NAME
    return { candidates: near.map(one => `${one.canonical_route} (${one.display_name})`), isAmbiguous }
  }

  /** Whether the directory contains an address. */
  knows(id: string, address: Parameters<typeof routeOf>[0]): boolean {
    return targets.get(this.kernel.db, { instanceId: id, route: routeOf(address) }) !== undefined
  }

  #near(rows: readonly Row[], text: string): BridgeTarget[] {
    const begin = text.slice(0, 3)
    return begin === ''
      ? []
      : rows
          .filter(row => row.normalized.includes(begin))
          .slice(0, CANDIDATES)
          .map(wireOf)
  }

  #diagnostic(
    id: string,
    name: string,
    code: 'bridge_target_ambiguous' | 'bridge_target_unknown',
    message: string,
  ): DiagnosticItem {
    return finding({
      id: `bridges.target.${id}`,
      code,
      category: 'bridges',
      severity: 'error',
      title: code === 'bridge_target_unknown' ? 'Unknown target' : 'Ambiguous target',
      message,
      suggested_command: command('bridge targets', id),
      evidence: { name: cut(name, NAME_MAX) },
    })
  }
}

/** Normalized form of a name for comparison: without case, leading marks and invisible characters. */
export const normalized = (name: string): string =>
  name
    .normalize('NFKC')
    .replaceAll(new RegExp(UNSEEN.source, 'gu'), '')
    .trim()
    .replace(/^[#@]+/, '')
    .toLowerCase()

/** Undefined for a target without an address or name. */
function rowOf(target: SnapshotTarget) {
  const { display_name = '', target_type = '', qualifier, capabilities = [] } = target
  const { peer_id, group_id } = target
  const id = group_id ?? peer_id
  if (typeof id !== 'string' || id === '' || id.length > NAME_MAX || typeof display_name !== 'string') return undefined
  const displayName = cut(display_name.trim() || id, NAME_MAX)
  return {
    route: routeOf(target),
    displayName,
    normalized: normalized(displayName),
    targetType: cut(String(target_type || (group_id === undefined ? 'user' : 'group')), 64),
    ...(typeof qualifier === 'string' && qualifier !== '' && { qualifier: cut(qualifier, NAME_MAX) }),
    capabilities: capabilities.slice(0, 32).map(text => cut(String(text), 64)),
  }
}

const wireOf = (row: Row): BridgeTarget =>
  targets.wire(row, BridgeTarget, {
    bridge_id: row.instanceId,
    canonical_route: row.route,
    capabilities: [...row.capabilities],
  })
