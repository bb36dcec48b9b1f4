import { createHash } from 'node:crypto'
import type { Db, Tx } from '../../kernel/plugin.js'
import type { PromptReply } from '../../schemas/sessions.js'
import { SessionErrors } from './api.js'
import type { NewEvent } from './events.js'

/** What becomes of a prompt; the first two are alive, the others final. */
export type PromptStatus = 'queued' | 'running' | 'completed' | 'failed' | 'canceled' | 'dropped' | 'indeterminate'

/** Answered prompts with a key that are kept of each session, so that a repetition is known. */
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
  /** The answer that was given, as JSON. */
  readonly reply: string
  readonly cause: string | null
  readonly enqueued_at: number
}

/** What makes two prompts the same. */
export function digestOf(text: string, mode: string, runtime: unknown): string {
  return `sha256:${createHash('sha256')
    .update(JSON.stringify([text, mode, runtime ?? null]))
    .digest('hex')}`
}

/** Tells whoever waits for a turn that its prompt left the queue without running. */
export function droppedEvent(turnId: string): NewEvent {
  return { type: 'system', turnId, content: { note: 'prompt_dropped', text: 'a prompt that waited was dropped' } }
}

/** The prompts of all sessions: those that wait, the one that runs, and answered ones by their key (Behaviour 6.4). */
export class PromptTable {
  constructor(private readonly db: Db) {}

  /** Waiting ones, first in first out. */
  queued(sessionId: string): PromptRow[] {
    const sql = "SELECT * FROM sessions_prompt WHERE session_id = ? AND status = 'queued' ORDER BY seq"
    return this.db.all<PromptRow>(sql, [sessionId])
  }

  /** Rises with each interruption: what was queued before it is stale. */
  generation(sessionId: string): number {
    const sql = 'SELECT max(generation) AS n FROM sessions_prompt WHERE session_id = ?'
    return this.db.get<{ n: number | null }>(sql, [sessionId])?.n ?? 1
  }

  /**
   * The answer to an earlier prompt with the same key and the same payload (decision 16); undefined when there was none.
   * Throws `prompt_idempotency_conflict` (409).
   */
  replay(sessionId: string, key: string | undefined, messageId: string | undefined, digest: string): unknown {
    const byMessage = messageId && this.#find(sessionId, 'message_id', messageId)
    const byKey = key === undefined ? undefined : this.#find(sessionId, 'idempotency_key', key)
    if (byMessage && byMessage.idempotency_key !== (key ?? null)) {
      throw SessionErrors.prompt_idempotency_conflict(
        'this message id was sent with another idempotency key, or without',
      )
    }
    if (byMessage && key === undefined) {
      throw SessionErrors.prompt_idempotency_conflict('this message id was sent already; a repetition needs its key')
    }
    if (!byKey) return undefined
    if (byKey.digest !== digest || (messageId !== undefined && byKey.message_id !== messageId)) {
      throw SessionErrors.prompt_idempotency_conflict('this idempotency key is bound to another prompt')
    }
    if (byKey.status === 'indeterminate') {
      throw SessionErrors.prompt_idempotency_conflict(
        'nobody knows whether this prompt was carried out: the daemon ended meanwhile',
        { next: 'look at the history, then send it with another key' },
      )
    }
    return JSON.parse(byKey.reply) as PromptReply
  }

  insert(t: Tx, row: Omit<PromptRow, 'seq'>): void {
    const names = Object.keys(row)
    const values = names.map(name => row[name as keyof typeof row])
    t.run(`INSERT INTO sessions_prompt (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`, values)
  }

  setStatus(t: Tx, id: string, status: PromptStatus): void {
    t.run('UPDATE sessions_prompt SET status = ? WHERE id = ?', [status, id])
  }

  /** The end of a prompt: kept for repetitions when it has a key, else gone. */
  finish(t: Tx, { id, session_id }: Pick<PromptRow, 'id' | 'session_id'>, status: PromptStatus): void {
    this.setStatus(t, id, status)
    t.run('DELETE FROM sessions_prompt WHERE id = ? AND idempotency_key IS NULL', [id])
    t.run(
      `DELETE FROM sessions_prompt WHERE session_id = ?1 AND status NOT IN ('queued', 'running') AND seq <=
        (SELECT seq FROM sessions_prompt WHERE session_id = ?1 AND status NOT IN ('queued', 'running')
          ORDER BY seq DESC LIMIT 1 OFFSET ?2)`,
      [session_id, KEPT],
    )
  }

  /** Is one of these identities another prompt's. */
  isBound(sessionId: string, messageId: string, key: string, except: string): boolean {
    const bound = [this.#find(sessionId, 'message_id', messageId), this.#find(sessionId, 'idempotency_key', key)]
    return bound.some(prompt => prompt !== undefined && prompt.id !== except)
  }

  /** Another text for a prompt that waits, under new identities. */
  change(t: Tx, id: string, to: Pick<PromptRow, 'text' | 'digest' | 'message_id' | 'idempotency_key'>): void {
    const sql = 'UPDATE sessions_prompt SET text = ?, digest = ?, message_id = ?, idempotency_key = ? WHERE id = ?'
    t.run(sql, [to.text, to.digest, to.message_id, to.idempotency_key, id])
  }

  /** Ends all that wait; returns how many. */
  dropQueued(t: Tx, sessionId: string, status: 'canceled' | 'dropped'): number {
    const sql = "UPDATE sessions_prompt SET status = ? WHERE session_id = ? AND status = 'queued'"
    return t.run(sql, [status, sessionId]).changes
  }

  /** After a crash: nobody knows how far a running one came. */
  abandonRunning(t: Tx, sessionId: string): void {
    t.run("UPDATE sessions_prompt SET status = 'indeterminate' WHERE session_id = ? AND status = 'running'", [
      sessionId,
    ])
    t.run("DELETE FROM sessions_prompt WHERE session_id = ? AND status = 'indeterminate' AND idempotency_key IS NULL", [
      sessionId,
    ])
  }

  #find(sessionId: string, column: 'message_id' | 'idempotency_key', value: string): PromptRow | undefined {
    const sql = `SELECT * FROM sessions_prompt WHERE session_id = ? AND ${column} = ?`
    return this.db.get<PromptRow>(sql, [sessionId, value])
  }
}
