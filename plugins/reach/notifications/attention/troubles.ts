import type { Tx } from '../../../../kernel/plugin.js'
import { RecordDeleted, type StoredEvent } from '../../../platform/events/api.js'
import { JobKind, TriggerKind } from '../../../work/automation/api.js'
import { BridgeInstanceKind, type BridgesApi } from '../../bridges/api.js'
import type { AttentionEntry, AttentionKind, RequestKind } from '../api.js'
import { type Happening, happeningOf, outcomeOf, subjectOf } from '../dispatch/happening.js'
import type { K } from '../needs.js'
import { type TroubleRow, troubles } from '../tables.js'

interface Trouble {
  /** Prefix of its id: events of one family share one item per subject. */
  readonly of: string
  readonly kind: AttentionKind
  readonly request: RequestKind
}

const task = { of: 'task', kind: 'failure', request: 'review' } as const
const session = { of: 'session', kind: 'failure', request: 'review' } as const
const provider = { of: 'provider', kind: 'provider', request: 'repair' } as const
const bridge = { of: 'bridge', kind: 'bridge', request: 'repair' } as const

const RUN_ENDED = 'automation.run.ended'

/** Events that begin a problem for a person. */
const BEGINS: Readonly<Record<string, Trouble>> = {
  'task.run_failed': task,
  'task.run_operator_forced_fail': task,
  'task.budget_exceeded': { of: 'budget', kind: 'budget', request: 'review' },
  'session.unhealthy': session,
  'session.hung': session,
  'provider.auth_required': { ...provider, request: 'login' },
  'provider.rate_limited': provider,
  'provider.permission_denied': { ...provider, request: 'login' },
  'provider.unavailable': provider,
  'bridge.auth_required': { ...bridge, request: 'login' },
  'bridge.error': bridge,
  'bridge.degraded': bridge,
  'bridge.delivery_failed': { of: 'delivery', kind: 'delivery', request: 'resend' },
  [RUN_ENDED]: { of: 'automation', kind: 'failure', request: 'review' },
  'attention.expired': { of: 'expired', kind: 'question', request: 'review' },
}

/** Events that end problems, with the families of problems they end. */
const ENDS: Readonly<Record<string, readonly string[]>> = {
  'task.run_enqueued': ['task', 'budget'],
  'task.run_completed': ['task', 'budget'],
  'task.run_canceled': ['task', 'budget'],
  'task.canceled': ['task', 'budget'],
  'task.deleted': ['task', 'budget'],
  'session.recovered': ['session'],
  'provider.recovered': ['provider'],
  'bridge.ready': ['bridge'],
}

/** Kinds of records whose deletion ends their problems. */
const KINDS: ReadonlySet<string> = new Set([JobKind.name, TriggerKind.name, BridgeInstanceKind.name])

/** Whether an event begins or ends a problem. */
export const isTrouble = (name: string): boolean =>
  Object.hasOwn(BEGINS, name) || Object.hasOwn(ENDS, name) || name === RecordDeleted.name

/** Problems derived from events, written in the event's transaction, so that the list is always current. */
export class Troubles {
  constructor(private readonly kernel: K) {}

  note(t: Tx, event: StoredEvent): void {
    const own = this.kernel.db.within(t)
    if (event.name === RecordDeleted.name) {
      const { kind, id } = event.payload as { readonly kind: string; readonly id: string }
      if (KINDS.has(kind)) troubles.delete(own, { source_id: id })
      return
    }
    const begins = Object.hasOwn(BEGINS, event.name) ? BEGINS[event.name] : undefined
    const outcome = outcomeOf(event)
    // A job's run reports the expired question itself.
    if (event.name === RUN_ENDED) {
      const { sessionId } = happeningOf(this.kernel, event)
      if (sessionId !== undefined) troubles.delete(own, { id: `expired:${sessionId}` })
    }
    // The text and the names for it are made for a problem only: most events end one that is not there.
    if (begins && outcome === 'failure') {
      const row = rowOf(begins, happeningOf(this.kernel, event), event)
      troubles.replace(own, row)
      if (begins.of === 'delivery') forgetDeliveries(own, row.at)
      return
    }
    // Some events have their outcome in the payload; for a canceled run it is neither.
    const ended = begins ? (outcome === 'success' ? [begins.of] : []) : (ENDS[event.name] ?? [])
    for (const of of ended) troubles.delete(own, { id: `${of}:${subjectOf(event)}` })
  }

  entries(): AttentionEntry[] {
    const rows = troubles.all(this.kernel.db, {}, 'ORDER BY seq DESC LIMIT 10000')
    const { current: bridges } = this.kernel.needs.bridges
    return (bridges ? rows.filter(thereOf(bridges)) : rows).map(entryOf)
  }
}

/** Whether a problem still exists: there are no events for a disabled bridge, or for a resent or discarded message. */
function thereOf(bridges: BridgesApi): (row: TroubleRow) => boolean {
  const failed = bridges.failedDeliveries()
  return ({ id, source_id: sourceId }) => {
    if (id.startsWith('delivery:')) return failed.has(sourceId)
    return !id.startsWith('bridge:') || bridges.get(sourceId)?.status !== 'disabled'
  }
}

/** Milliseconds for which delivery problems are kept; bridges delete failed messages earlier. */
const DELIVERY_MS = 60 * 24 * 3_600_000

function forgetDeliveries(t: Tx, now: number): void {
  t.run("DELETE FROM notifications_trouble WHERE id >= 'delivery:' AND id < 'delivery;' AND at < ?", [
    now - DELIVERY_MS,
  ])
}

function rowOf({ of }: Trouble, happening: Happening, { payload }: StoredEvent): TroubleRow {
  const { subject, type, seq, at, workspaceId, title, detail = '', agentName, command } = happening
  const { delivery_id: delivery } = payload as { readonly delivery_id?: string }
  return {
    id: `${of}:${delivery ?? subject}`,
    ...{ event_name: type, seq, at, title, detail },
    source_id: delivery ?? subject,
    ...(workspaceId !== undefined && { workspace_id: workspaceId }),
    ...(agentName !== undefined && { agent_name: agentName }),
    ...(command !== undefined && { command }),
  }
}

function entryOf(row: TroubleRow): AttentionEntry {
  const { id, event_name: name, seq, at, source_id: sourceId, title, detail } = row
  const [of] = id.split(':', 1)
  const { kind = 'failure', request = 'review' } = BEGINS[name] ?? {}
  return {
    ...{ id, kind, requestKind: request, sourceId, generation: seq, occurredAt: at, title, detail },
    ...((of === 'task' || of === 'budget') && { taskId: sourceId }),
    ...((of === 'session' || of === 'expired') && { sessionId: sourceId }),
    ...(row.workspace_id !== undefined && { workspaceId: row.workspace_id }),
    ...(row.agent_name !== undefined && { agentName: row.agent_name }),
    ...(row.command !== undefined && { command: row.command }),
  }
}
