import { type Actor, type Notify, ok, type Tx } from '../../../kernel/plugin.js'
import type { RefreshSoulBody, Soul } from '../../../schemas/agents/sidecars.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { type Briefing, SessionErrors, type SessionInfo } from '../../work/sessions/api.js'
import { SidecarErrors, SoulRefreshed } from './api.js'
import { checkDigest, type SidecarFiles } from './files.js'
import { SIDECARS } from './locations.js'
import type { K } from './needs.js'
import { SoulSetting } from './settings.js'
import { personaOf } from './soul.js'

/** Milliseconds for which the key of a refresh is remembered. */
const KEY_KEPT_MS = 7 * 24 * 60 * 60_000

export const refreshTable = `CREATE TABLE sidecars_refresh (
  session_id TEXT NOT NULL UNIQUE, digest TEXT NOT NULL, idempotency_key TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
CREATE INDEX sidecars_refresh_at ON sidecars_refresh (at)`

/** The personas of sessions: a session keeps the persona from its start until a refresh. */
export class Personas implements Briefing {
  readonly name = 'persona'

  constructor(
    private readonly kernel: K,
    private readonly souls: SidecarFiles<Soul>,
    private readonly resolved: Notify<[Soul, Pick<SessionInfo, 'id' | 'agentName'>]>,
  ) {}

  /**
   * Refuses to start a session whose agent has an invalid persona, since it would run without its identity. Throws
   * `soul_invalid` (422).
   */
  read = async (session: SessionInfo, workspace: Workspace): Promise<string | undefined> => {
    const soul = await this.souls.read(session.agentName, workspace)
    const text = this.#textOf(soul)
    if (text === undefined) {
      const wrong = soul.diagnostics?.find(({ severity }) => severity === 'error')
      const line = wrong?.line === undefined ? '' : ` (line ${wrong.line})`
      throw SidecarErrors.soul_invalid(
        `the persona of agent ${session.agentName} is not valid: ${wrong?.message}${line}`,
        {
          details: { ...(soul.source_path && { path: soul.source_path }), ...(wrong && { error_kind: wrong.code }) },
          next: SIDECARS.soul.inspect(session.agentName),
        },
      )
    }
    // Not awaited: a listener must not delay the start of a session.
    if (soul.present) void this.resolved.call(soul, session)
    return text || undefined
  }

  /**
   * Gives a session the current persona. Throws `session_not_found` (404); `session_busy`, `session_stopped`,
   * `sidecar_changed`, `sidecar_idempotency_conflict` (409).
   */
  async refresh(at: { workspace_id: string; session_id: string }, body: RefreshSoulBody, actor: Actor) {
    const { needs, db } = this.kernel
    const { events } = needs
    const workspace = await needs.workspaces.find(at.workspace_id)
    const session = needs.sessions.get(at.session_id)
    if (session?.workspaceId !== workspace.id) {
      throw SessionErrors.session_not_found(`no session ${at.session_id} in workspace ${at.workspace_id}`)
    }
    if (this.#isRepeated(session.id, body)) return ok(await this.souls.read(session.agentName, workspace))
    return needs.sessions.whileIdle(session.id, async idle => {
      const soul = await this.souls.read(session.agentName, workspace)
      const text = this.#textOf(soul)
      if (text === undefined) return { status: 422 as const, body: soul }
      checkDigest('soul', session.agentName, soul.digest, body.expected_digest)
      await db.tx(t => {
        idle.brief(t, this.name, text)
        this.#remember(t, session.id, body)
        const payload = {
          session_id: session.id,
          agent_name: session.agentName,
          ...(soul.digest && { digest: soul.digest }),
        }
        events.emit(t, SoulRefreshed, payload, { actor, scope: workspace.id, subject: session.id })
      })
      await this.resolved.call(soul, session)
      return ok(soul)
    })
  }

  /** Text of a persona for the agent; empty if absent or disabled, undefined if invalid. */
  #textOf({ active, body = '', frontmatter, validation_status }: Soul): string | undefined {
    const config = this.kernel.config.get(SoulSetting)
    if (validation_status === 'invalid' && config.enabled) return undefined
    return active ? personaOf(body, frontmatter, config).text : ''
  }

  /**
   * Whether the key belongs to an earlier refresh. Throws `sidecar_idempotency_conflict` (409) if that was a different
   * one.
   */
  #isRepeated(sessionId: string, { idempotency_key: key, expected_digest }: RefreshSoulBody): boolean {
    if (key === undefined) return false
    const sql = 'SELECT digest FROM sidecars_refresh WHERE session_id = ? AND idempotency_key = ?'
    const row = this.kernel.db.get<{ digest: string }>(sql, [sessionId, key])
    if (row && row.digest !== expected_digest) throw SidecarErrors.sidecar_idempotency_conflict()
    return row !== undefined
  }

  #remember(t: Tx, sessionId: string, { idempotency_key: key, expected_digest: digest }: RefreshSoulBody): void {
    if (key === undefined) return
    const now = this.kernel.clock.now()
    t.run('DELETE FROM sidecars_refresh WHERE session_id = ? OR at < ?', [sessionId, now - KEY_KEPT_MS])
    t.run('INSERT INTO sidecars_refresh (session_id, digest, idempotency_key, at) VALUES (?, ?, ?, ?)', [
      sessionId,
      digest,
      key,
      now,
    ])
  }
}
