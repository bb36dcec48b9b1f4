import { command } from '../../../../kernel/kit/commands/command-line.js'
import { type Contribution, type Db, Fault, messageOf, type Tx, within } from '../../../../kernel/plugin.js'
import type { Workspace } from '../../../desk/workspaces/api.js'
import { type Briefing, SessionBriefings, SessionErrors, type SessionInfo } from '../api.js'
import { Remembered } from '../lifecycle/remembered.js'
import type { K } from '../needs.js'
import { SessionSettings } from '../settings.js'
import type { SessionRow } from '../table.js'

export const BRIEFING_TABLE = `
CREATE TABLE sessions_briefing (
  session_id TEXT NOT NULL,
  name TEXT NOT NULL,
  text TEXT NOT NULL,
  changed INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX sessions_briefing_part ON sessions_briefing (session_id, name);`

/** One part of a briefing (agent instructions besides the definition), named after its contributor. */
export interface BriefingPart {
  readonly name: string
  readonly text: string
}

/** Reads and writes briefings. A briefing is stored with the session for which it was read. */
export class BriefingTable {
  readonly #texts = new Remembered(id => this.#of(id))

  constructor(private readonly db: Db) {}

  /** All parts as one text, empty for none, and whether the text changed since the session began. */
  of(sessionId: string): { readonly text: string; readonly changed: boolean } {
    return this.#texts.get(sessionId)
  }

  #of(sessionId: string) {
    const sql = 'SELECT text, changed FROM sessions_briefing WHERE session_id = ? ORDER BY name'
    const parts = this.db.all<{ text: string; changed: number }>(sql, [sessionId])
    const texts = parts.map(({ text }) => text).filter(text => text !== '')
    return { text: texts.join('\n\n'), changed: parts.some(({ changed }) => changed === 1) }
  }

  /** Contributors that were already read for this session, including those without a text. */
  names(sessionId: string): ReadonlySet<string> {
    const rows = this.db.all<{ name: string }>('SELECT name FROM sessions_briefing WHERE session_id = ?', [sessionId])
    return new Set(rows.map(({ name }) => name))
  }

  /** @param late the agent may know the conversation already, so the next prompt has to carry the text */
  insert(t: Tx, sessionId: string, parts: readonly BriefingPart[], late = false): void {
    this.#texts.changed(sessionId)
    const sql = 'INSERT INTO sessions_briefing (session_id, name, text, changed) VALUES (?, ?, ?, ?)'
    for (const { name, text } of parts) t.run(sql, [sessionId, name, text, late && text !== '' ? 1 : 0])
  }

  /** @param t may be a transaction of another plugin */
  change(t: Tx, sessionId: string, { name, text }: BriefingPart): void {
    this.#texts.changed(sessionId)
    this.db.within(t).run(
      `INSERT INTO sessions_briefing (session_id, name, text, changed) VALUES (?, ?, ?, 1)
       ON CONFLICT (session_id, name) DO UPDATE SET text = excluded.text, changed = 1`,
      [sessionId, name, text],
    )
  }
}

/**
 * Reads the briefing parts of a session that is about to be made, or of an older session that has none from a contributor yet.
 * Contributors in `known` are not read again. A refusal or a failure of one contributor refuses the session.
 */
export async function readBriefing(
  { collect, clock, log, config }: K,
  session: SessionInfo,
  workspace: Workspace,
  known: ReadonlySet<string> = new Set(),
): Promise<BriefingPart[]> {
  const { path } = SessionSettings.briefingTimeout
  const ms = config.get(SessionSettings.briefingTimeout)
  const read = async ({ owner, entry }: Contribution<Briefing>) => {
    let isLate = true
    const answer = (async () => entry.read(session, workspace))().finally(() => {
      isLate = false
    })
    try {
      return { name: entry.name, text: (await within(clock, ms || Number.POSITIVE_INFINITY, answer)) ?? '' }
    } catch (error) {
      if (error instanceof Fault) throw error
      const why = isLate ? `no answer within ${ms / 1000} s (${path})` : messageOf(error)
      log.error(`${owner} does not say what a session is told: ${why}`, { agent: session.agentName })
      throw SessionErrors.session_briefing_failed(`the ${entry.name} of agent ${session.agentName}: ${why}`, {
        ...(isLate && { next: command('config set', path, `${(ms * 2) / 1000}s`) }),
      })
    }
  }
  return Promise.all(
    collect(SessionBriefings)
      .filter(({ entry }) => !known.has(entry.name))
      .map(read),
  )
}

/** The text that replaces an earlier briefing, sent with the next prompt. */
export function renewed(text: string): string {
  return text === ''
    ? 'What you were told about yourself besides your task holds no longer.'
    : `From here on this holds instead of what you were told about yourself before:\n\n${text}`
}

/** First words of the start-up instructions of an agent. */
export const ENVELOPE_HEAD = 'You are the agent '

/** The start-up instructions of an agent, sent before its first prompt. */
export function envelope(row: SessionRow, workspace: Workspace, cwd: string, body: string): string {
  return `${ENVELOPE_HEAD}${row.agent_name}, in session ${row.id}, workspace ${workspace.name} at ${cwd}.\n\n${body}`
}
