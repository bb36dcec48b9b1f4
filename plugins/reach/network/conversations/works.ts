import { iso, type Tx } from '../../../../kernel/plugin.js'
import type { Envelope, Work, WorkState } from '../../../../schemas/network/messages.js'
import { type HappeningName, NetworkErrors } from '../api.js'
import type { Refusal } from '../envelope.js'
import type { Happenings } from '../happenings.js'
import type { K } from '../needs.js'
import { type ContainerRow, type PeerRow, type WorkRow, works } from '../tables.js'
import { BY_RECEIPT, isClosed, WORK_TRANSITIONS } from './work-states.js'

/** Work of one peer for another. */
export class Works {
  constructor(
    private readonly kernel: K,
    private readonly happenings: Happenings,
  ) {}

  /** Effect of a message on its work, to be written after all checks; a refusal if the work does not allow it. */
  plan(
    t: Tx,
    workspaceId: string,
    envelope: Envelope,
    container: ContainerRow | undefined,
    { author, target }: { readonly author: PeerRow | undefined; readonly target: PeerRow | undefined },
    now: number,
  ): Refusal | (() => void) | undefined {
    const { work_id: workId, kind, from, to } = envelope
    if (!workId || !container) return undefined
    const work = works.get(t, { workspaceId, workId })
    if (!work) {
      if (kind !== 'say' && kind !== 'capability') return { reason: 'not_found', message: `there is no work ${workId}` }
      const opened: WorkRow = {
        ...{ workspaceId, workId, channel: envelope.channel, surface: container.surface, containerId: container.id },
        ...{ initiator: from, target: `${to}`, openedSession: author?.sessionId, targetSession: target?.sessionId },
        ...{ state: 'submitted', openedAt: now, lastAt: now },
      }
      return () => {
        works.insert(t, opened)
        this.#tell(t, 'workOpened', opened, envelope)
      }
    }
    const sides = [work.initiator, work.target]
    const elsewhere = work.channel !== envelope.channel || work.containerId !== container.id
    if (elsewhere || !sides.includes(from) || (to && !sides.includes(to)))
      return {
        reason: 'work_container_mismatch',
        message: `the work ${workId} is between ${sides.join(' and ')} in ${work.containerId}`,
      }
    if (isClosed(work.state)) return { reason: 'work_closed', message: `the work ${workId} is ${work.state}` }
    const next = this.#stateOf(envelope, work)
    if (next !== undefined && !WORK_TRANSITIONS[work.state].includes(next))
      return { reason: 'malformed', message: `the work ${workId} cannot change from ${work.state} to ${next}` }
    const state = next ?? work.state
    return () => {
      works.update(t, { workspaceId, workId }, { state, lastAt: now, ...(isClosed(state) && { endedAt: now }) })
      if (state === work.state) return
      this.#tell(t, 'workTransitioned', { ...work, state }, envelope)
      if (isClosed(state)) this.#tell(t, 'workClosed', { ...work, state }, envelope)
    }
  }

  #tell(t: Tx, what: HappeningName, work: WorkRow, { id, kind, from }: Envelope): void {
    const { workspaceId, channel, surface, containerId, workId, state, initiator, target } = work
    this.happenings.tell(t, what, () => ({
      workspace_id: workspaceId,
      ...{ channel, surface, [surface === 'thread' ? 'thread_id' : 'direct_id']: containerId },
      ...{ kind, from, initiator, target, message_id: id, work_id: workId, work_state: state },
    }))
  }

  #stateOf({ kind, body, from }: Envelope, { target }: WorkRow): WorkState | undefined {
    if (kind === 'trace') return (body as { readonly state: WorkState }).state
    if (kind !== 'receipt') return undefined
    const { status } = body as { readonly status: string }
    // Only the target may reject work; both sides may cancel it.
    return status === 'canceled' || from === target ? BY_RECEIPT[status] : undefined
  }

  /** @throws Fault `work_not_found` */
  found(workspaceId: string, workId: string): Work {
    const row = works.get(this.kernel.db, { workspaceId, workId })
    if (!row) throw NetworkErrors.work_not_found(`there is no work ${JSON.stringify(workId)}`)
    return {
      channel: row.channel,
      state: row.state,
      surface: row.surface,
      work_id: row.workId,
      [row.surface === 'thread' ? 'thread_id' : 'direct_id']: row.containerId,
      last_activity_at: iso(row.lastAt),
      opened_at: iso(row.openedAt),
      ...(row.openedSession !== undefined && { opened_session_id: row.openedSession }),
      ...(row.targetSession !== undefined && { target_session_id: row.targetSession }),
      terminal_at: row.endedAt === undefined ? null : iso(row.endedAt),
      workspace_id: row.workspaceId,
    }
  }
}
