import { createHash } from 'node:crypto'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { History } from '../../../../kernel/kit/history.js'
import type { Db, Tx } from '../../../../kernel/plugin.js'
import type { PromptReceipt } from '../../../../schemas/sessions.js'
import type { EventContent } from '../../acp/api.js'
import { SessionErrors } from '../api.js'
import type { NewEvent } from '../events.js'
import { Remembered } from '../lifecycle/remembered.js'

/**
 * Status of a prompt. The first three are alive: `queued` waits; `starting` has begun while the agent starts; `running` may have
 * reached the agent. After a crash a prompt that cannot have reached the agent is `interrupted`; one that may have is
 * `indeterminate`.
 */
export type PromptStatus =
  | 'queued'
  | 'starting'
  | 'running'
  | 'completed'
  | 'failed'
  | 'canceled'
  | 'dropped'
  | 'interrupted'
  | 'indeterminate'

/** Statuses of prompts that ended before the agent got them. Without a turn outcome, a repetition is answered with the status. */
const TOLD: ReadonlySet<PromptStatus> = new Set<PromptStatus>(['canceled', 'dropped', 'interrupted'])
const ALIVE = "('queued', 'starting', 'running')"

/** Answered prompts with a key that are kept per session, so that repetitions are recognised. */
const KEPT = 200

/** A row of sessions_prompt. */
export interface PromptRow {
  readonly seq: number
  /** `prq_` and 16 hex. */
  readonly id: string
  readonly session_id: string
  readonly message_id: string
  readonly idempotency_key: string | null
  readonly digest: string
  readonly text: string
  readonly mode: string
  readonly source: string
  readonly status: PromptStatus
  readonly turn_id: string
  readonly generation: number
  /** The reply that the sender got, as JSON. */
  readonly reply: string
  readonly cause: string | null
  /** The runtime for its turn only, as JSON. */
  readonly runtime: string | null
  /** IDs of the attached files, as JSON. */
  readonly attachments: string | null
  /** Texts for the agent before the prompt, as JSON; null for none. */
  readonly context_blocks: string | null
  /** The person on whose behalf a plugin sent it, as JSON; null for none. */
  readonly on_behalf_of: string | null
  readonly enqueued_at: number
}

/** Two prompts with the same digest are the same prompt. */
export function digestOf(text: string, mode: string, runtime: unknown, attachments?: readonly string[]): string {
  return `sha256:${createHash('sha256')
    .update(JSON.stringify([text, mode, runtime ?? null, ...(attachments?.length ? [attachments] : [])]))
    .digest('hex')}`
}

/** The journal event of a prompt, written before its sender gets a reply. */
export function promptEvent({
  turn_id: turnId,
  text,
  source,
  message_id,
  context_blocks,
  on_behalf_of,
  files = [],
}: Pick<PromptRow, 'turn_id' | 'text' | 'source'> & {
  readonly message_id?: string | undefined
  readonly context_blocks?: string | null
  readonly on_behalf_of?: string | null
  readonly files?: readonly EventContent[]
}): NewEvent {
  return {
    type: 'user_message',
    turnId,
    content: {
      text,
      source,
      ...(message_id !== undefined && { message_id }),
      ...(files.length > 0 && { attachments: files }),
      ...(context_blocks != null && { context_blocks: JSON.parse(context_blocks) }),
      ...(on_behalf_of != null && { on_behalf_of: JSON.parse(on_behalf_of) }),
    },
  }
}

/** The event for readers that wait for a turn whose prompt left the queue without running. */
export function droppedEvent(turnId: string): NewEvent {
  return { type: 'system', turnId, content: { note: 'prompt_dropped', text: 'a prompt that waited was dropped' } }
}

/** The prompts of all sessions: waiting, running, and answered ones by their idempotency key. */
export class PromptTable {
  readonly #history: History<PromptRow>
  readonly #queues = new Remembered(sessionId => {
    const sql = "SELECT * FROM sessions_prompt WHERE session_id = ? AND status = 'queued' ORDER BY seq"
    return this.db.all<PromptRow>(sql, [sessionId]) as readonly PromptRow[]
  })

  constructor(private readonly db: Db) {
    this.#history = new History(db, { table: 'sessions_prompt', ended: `status NOT IN ${ALIVE}` })
  }

  /** Waiting prompts, first in first out. */
  queued(sessionId: string): readonly PromptRow[] {
    return this.#queues.get(sessionId)
  }

  /** Incremented with each interruption: prompts queued before it are stale. */
  generation(sessionId: string): number {
    const sql = `SELECT max(n) AS n FROM (
      SELECT max(generation) AS n FROM sessions_prompt WHERE session_id = ?1
      UNION ALL SELECT prompts_moved FROM sessions_session WHERE id = ?1)`
    return this.db.get<{ n: number | null }>(sql, [sessionId])?.n ?? 1
  }

  /**
   * The reply to an earlier prompt with the same key and the same payload; undefined when there was none. Throws
   * `prompt_idempotency_conflict` (409).
   */
  replay(
    sessionId: string,
    key: string | undefined,
    messageId: string | undefined,
    digest: string,
  ): PromptReceipt | undefined {
    const byMessage = messageId && this.#find(sessionId, 'message_id', messageId)
    const byKey = key === undefined ? undefined : this.#find(sessionId, 'idempotency_key', key)
    if (byMessage && byMessage.idempotency_key !== (key ?? null)) {
      throw SessionErrors.prompt_idempotency_conflict(
        'this message id was sent with another idempotency key, or without one',
      )
    }
    if (byMessage && key === undefined) {
      throw SessionErrors.prompt_idempotency_conflict('this message id was sent already; a repetition needs its key')
    }
    if (!byKey) return undefined
    if (byKey.digest !== digest || (messageId !== undefined && byKey.message_id !== messageId)) {
      throw SessionErrors.prompt_idempotency_conflict('this idempotency key was used for another prompt')
    }
    if (byKey.status === 'indeterminate') {
      throw SessionErrors.prompt_idempotency_conflict(
        `it is unknown whether the agent processed this prompt: the daemon stopped during its turn, ${byKey.turn_id}`,
        {
          next: `look at turn ${byKey.turn_id} (${command('session history', sessionId)}), then send it with another key`,
        },
      )
    }
    const reply = JSON.parse(byKey.reply) as PromptReceipt
    return { ...reply, replayed: true, ...(TOLD.has(byKey.status) && { status: byKey.status }) }
  }

  insert(t: Tx, row: Omit<PromptRow, 'seq'>): void {
    if (row.status === 'queued') this.#queues.changed(row.session_id)
    this.#history.append(t, row)
  }

  setStatus(t: Tx, { id, session_id }: Pick<PromptRow, 'id' | 'session_id'>, status: PromptStatus): void {
    this.#left(session_id, id)
    t.run('UPDATE sessions_prompt SET status = ? WHERE id = ?', [status, id])
  }

  /** Ends a prompt. A prompt with a key is kept without its text for repetitions; others are deleted. */
  finish(t: Tx, { id, session_id }: Pick<PromptRow, 'id' | 'session_id'>, status: PromptStatus): void {
    this.#left(session_id, id)
    if (t.run('DELETE FROM sessions_prompt WHERE id = ? AND idempotency_key IS NULL', [id]).changes > 0) return
    t.run("UPDATE sessions_prompt SET status = ?, text = '', context_blocks = NULL WHERE id = ?", [status, id])
    this.#history.prune(t, { session_id }, { newest: KEPT })
  }

  /** The prompt of a key, whatever its status. */
  ofKey(sessionId: string, key: string): PromptRow | undefined {
    return this.#find(sessionId, 'idempotency_key', key)
  }

  /** Whether another prompt already uses the message ID or the key. */
  isBound(sessionId: string, messageId: string, key: string, except: string): boolean {
    const bound = [this.#find(sessionId, 'message_id', messageId), this.#find(sessionId, 'idempotency_key', key)]
    return bound.some(prompt => prompt !== undefined && prompt.id !== except)
  }

  /** Replaces the text of a waiting prompt, under new IDs. */
  change(
    t: Tx,
    id: string,
    to: Pick<PromptRow, 'text' | 'context_blocks' | 'digest' | 'message_id' | 'idempotency_key'>,
  ): void {
    this.#queues.changedAll()
    const sql =
      'UPDATE sessions_prompt SET text = ?, context_blocks = ?, digest = ?, message_id = ?, idempotency_key = ? WHERE id = ?'
    t.run(sql, [to.text, to.context_blocks, to.digest, to.message_id, to.idempotency_key, id])
  }

  /** Makes a waiting prompt steer the running turn. `reply`: the reply that its sender got, as JSON. */
  stage(t: Tx, id: string, reply: string): void {
    this.#queues.changedAll()
    t.run("UPDATE sessions_prompt SET mode = 'steer', reply = ? WHERE id = ?", [reply, id])
  }

  /** Ends all waiting prompts; returns their number. */
  dropQueued(t: Tx, sessionId: string, status: 'canceled' | 'dropped'): number {
    this.#queues.changed(sessionId)
    const sql =
      "UPDATE sessions_prompt SET status = ?, text = '', context_blocks = NULL WHERE session_id = ? AND status = 'queued'"
    return t.run(sql, [status, sessionId]).changes
  }

  /** The prompt whose turn has begun and, as far as this table knows, not ended. */
  active(sessionId: string): PromptRow | undefined {
    const sql = "SELECT * FROM sessions_prompt WHERE session_id = ? AND status IN ('starting', 'running')"
    return this.db.get<PromptRow>(sql, [sessionId])
  }

  /** Ends the prompt of an abandoned turn: one that may have reached the agent has an unknown end. */
  abandon(t: Tx, sessionId: string): void {
    const active = this.active(sessionId)
    if (active) this.finish(t, active, active.status === 'starting' ? 'interrupted' : 'indeterminate')
  }

  /** Removes a prompt from the cached queue, if it is in it. */
  #left(sessionId: string, id: string): void {
    const queue = this.#queues.peek(sessionId)
    // Most prompts never waited, so the cache stays valid.
    if (queue?.every(prompt => prompt.id !== id)) return
    this.#queues.changed(sessionId)
  }

  #find(sessionId: string, column: 'message_id' | 'idempotency_key', value: string): PromptRow | undefined {
    const sql = `SELECT * FROM sessions_prompt WHERE session_id = ? AND ${column} = ?`
    return this.db.get<PromptRow>(sql, [sessionId, value])
  }
}
