import type { Tx } from '../../../../kernel/plugin.js'
import type { SubscriptionMode } from '../../../../schemas/network/channels.js'
import { isRestartable, type SessionInfo } from '../../../work/sessions/api.js'
import { NetworkErrors } from '../api.js'
import type { K } from '../needs.js'
import { NetworkEnabled } from '../settings.js'
import type { Decision, MessageRow } from '../tables.js'
import type { AddressedBy } from './addressing.js'
import type { BoundsOf, Budget } from './bounds.js'
import { exhaustedBy, keyOf, type Ledger, reservationOf, type Spent } from './ledger.js'
import { type WakeRow, wakes } from './table.js'

/** Sessions that a message to a whole channel may wake without a confirmation. */
const UNCONFIRMED = 3

/** A possible receiver of a message. */
export interface Recipient {
  readonly peerId: string
  readonly sessionId: string
  /** How the message addresses it; undefined if it does not. */
  readonly by: AddressedBy | undefined
}

/** Why a message does not wake a session. */
export type SkipReason =
  | 'not_live'
  | 'not_addressed'
  | 'duplicate'
  | 'coalesced'
  | 'depth_exceeded'
  | 'budget_exhausted'
  | 'network_disabled'

/** Decision about a message for a session. */
export interface Decided {
  readonly sessionId: string
  readonly decision: Decision
  readonly reason?: SkipReason
  /** The wake whose prompt contains it: a new one, or one that still collects messages. */
  readonly wakeId?: string
  /** Whether it stays in the inbox until the session receives it. */
  readonly isHeard: boolean
}

/** The sender of a message. */
export interface WakingSender {
  /** Whether it is on another daemon, where a confirmation is impossible. */
  readonly isRemote: boolean
  /** Whether a person allows it to wake more than 3 sessions. */
  readonly confirmed: boolean
  /** Whether its pair of peers is stopped. */
  readonly isStopped: boolean
}

/** All decisions about one message. */
export interface Admitted {
  readonly decided: readonly Decided[]
  readonly admitted: readonly WakeRow[]
}

/** Decides which sessions a message wakes, in the transaction that stores it. */
export class Admission {
  constructor(
    private readonly kernel: K,
    private readonly ledger: Ledger,
    private readonly boundsOf: BoundsOf,
  ) {}

  /** @throws Fault `wake_confirmation_required` */
  decide(t: Tx, message: MessageRow, recipients: readonly Recipient[], sender: WakingSender): Admitted {
    const modeOf = this.#modes(t, message)
    const called: Recipient[] = []
    const decided: Decided[] = []
    const wants = message.kind === 'say'
    for (const recipient of recipients) {
      const { sessionId, by } = recipient
      const mode = modeOf(sessionId)
      // A muted conversation still reaches a session by its name.
      const isFor = by !== undefined && (mode !== 'muted' || by === 'to' || by === 'room')
      if (isFor && wants) called.push(recipient)
      else decided.push(skip(sessionId, 'not_addressed', mode === 'all' || isFor))
    }
    if (called.length === 0) return { decided, admitted: [] }
    const { skips, admitted } = this.#admit(t, message, called, sender)
    const byChannel = called.filter(({ by }) => by === 'channel').length
    if (byChannel > 0 && admitted.length > UNCONFIRMED && !sender.confirmed) {
      if (!sender.isRemote) throw unconfirmed(admitted.length)
      // A message of another daemon cannot be confirmed here, so its receivers only find it in their inboxes.
      return { decided: [...decided, ...called.map(({ sessionId }) => skip(sessionId, 'not_addressed'))], admitted: [] }
    }
    for (const wake of admitted) wakes.insert(t, wake)
    const woken = admitted.map(({ sessionId, id }) => ({
      ...{ sessionId, decision: 'wake' as const, wakeId: id, isHeard: true },
    }))
    return { decided: [...decided, ...skips, ...woken], admitted }
  }

  #admit(t: Tx, message: MessageRow, called: readonly Recipient[], { isStopped }: WakingSender) {
    const skips: Decided[] = []
    const admitted: WakeRow[] = []
    const enabled = this.kernel.config.get(NetworkEnabled)
    const live = called.filter(({ sessionId }) => {
      const reason = !enabled ? 'network_disabled' : !this.#isLive(sessionId) ? 'not_live' : undefined
      if (reason) skips.push(skip(sessionId, reason))
      return reason === undefined
    })
    const budgets = new Map(live.map(({ sessionId }) => [sessionId, this.boundsOf(sessionId)]))
    const spent = this.ledger.spent(t, [...budgets.values()])
    const gathering = this.#gathering(t, live)
    const depth = message.depth + 1
    for (const { sessionId, peerId } of live) {
      const budget = budgets.get(sessionId) as Budget
      const used = spent.get(keyOf(budget.owner)) as Spent
      const open = gathering.get(sessionId)
      if (depth > budget.bounds.maxWakeDepth) skips.push(skip(sessionId, 'depth_exceeded'))
      else if (isStopped) skips.push(skip(sessionId, 'budget_exhausted'))
      else if (open) skips.push(this.#join(t, open, message, depth))
      else if (exhaustedBy(used, budget.bounds)) skips.push(skip(sessionId, 'budget_exhausted'))
      else {
        const wake = this.#reserve(message, { sessionId, peerId }, budget, used, depth)
        used.wakes += 1
        used.wallMs += wake.wallMs
        used.inputTokens += wake.inputTokens
        used.outputTokens += wake.outputTokens
        admitted.push(wake)
      }
    }
    return { skips, admitted }
  }

  /** Adds a message to a wake that still collects, for the same prompt. */
  #join(t: Tx, { id, sessionId, depth }: WakeRow, message: MessageRow, deeper: number): Decided {
    if (deeper > depth) wakes.update(t, { id }, { depth: deeper })
    const isRepeated = t.get(
      `SELECT 1 FROM network_delivery d JOIN network_message m ON m.seq = d.seq
       WHERE d.wake_id = ? AND d.session_id = ? AND m.sender = ? AND m.container_id IS ? AND m.preview = ?
         AND json_extract(m.envelope, '$.body') = json_extract(?, '$.body') LIMIT 1`,
      [id, sessionId, message.sender, message.containerId ?? null, message.preview, message.envelope],
    )
    return { ...skip(sessionId, isRepeated ? 'duplicate' : 'coalesced'), wakeId: id }
  }

  #reserve(
    { workspaceId, channel, rootId }: MessageRow,
    { sessionId, peerId }: Pick<Recipient, 'sessionId' | 'peerId'>,
    { owner, taskRunId, bounds }: Budget,
    used: Spent,
    depth: number,
  ): WakeRow {
    const now = this.kernel.clock.now()
    const reserved = reservationOf(used, bounds)
    return {
      ...{ id: this.kernel.ids.id('nwk'), workspaceId, channel, sessionId, peerId, taskRunId, rootId, depth },
      ...{ ownerKind: owner.kind, ownerId: owner.id, state: 'reserved', usageState: 'reserved', ...reserved },
      ...{ limitMs: reserved.wallMs, reservedAt: now, dueAt: now + bounds.coalesceWindow },
    }
  }

  #gathering(t: Tx, called: readonly Recipient[]): ReadonlyMap<string, WakeRow> {
    if (called.length === 0) return new Map()
    const ids = JSON.stringify(called.map(({ sessionId }) => sessionId))
    const where = "WHERE state = 'reserved' AND session_id IN (SELECT value FROM json_each(?))"
    return new Map(wakes.query(t, where, [ids]).map(row => [row.sessionId, row]))
  }

  /**
   * Subscription modes of sessions for the conversation of a message: that of the thread, else of the channel, else
   * all.
   */
  #modes(t: Tx, { workspaceId, channel, containerId = '' }: MessageRow): (sessionId: string) => SubscriptionMode {
    const rows = t.all<{ session_id: string; mode: SubscriptionMode }>(
      `SELECT session_id, mode FROM network_subscription WHERE workspace_id = ? AND channel = ? AND thread_id IN ('', ?)
       ORDER BY thread_id`,
      [workspaceId, channel, containerId],
    )
    // Ordered so that the mode of the thread overrides that of the channel.
    const chosen = new Map(rows.map(({ session_id, mode }) => [session_id, mode]))
    return sessionId => chosen.get(sessionId) ?? 'all'
  }

  /** Whether a prompt reaches the session, possibly by restarting it. */
  #isLive(sessionId: string): boolean {
    const session = this.kernel.needs.sessions.get(sessionId)
    return session !== undefined && isAwake(session)
  }
}

/** Whether a session is not permanently stopped. */
export function isAwake({ state, stopReason }: Pick<SessionInfo, 'state' | 'stopReason'>): boolean {
  return state === 'active' || state === 'starting' || isRestartable(state, stopReason)
}

const skip = (sessionId: string, reason: SkipReason, isHeard = true): Decided => ({
  ...{ sessionId, decision: 'skip', reason, isHeard },
})

function unconfirmed(count: number) {
  return NetworkErrors.wake_confirmation_required(`this message would wake ${count} sessions`, {
    details: { wake_count: `${count}` },
  })
}
