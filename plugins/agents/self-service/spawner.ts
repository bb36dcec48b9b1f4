import { createHash } from 'node:crypto'
import { Alarm } from '../../../kernel/kit/alarm.js'
import { canonicalJson } from '../../../kernel/kit/canonical.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { SerialBy } from '../../../kernel/kit/serial.js'
import { Fault, type HooksOf, iso, messageOf } from '../../../kernel/plugin.js'
import type { SpawnBody, SpawnReply } from '../../../schemas/sessions/self-service.js'
import { SessionErrors, type SessionInfo, type SessionLaunch } from '../../work/sessions/api.js'
import { SpawnErrors, type points as table } from './api.js'
import type { K } from './needs.js'
import { checkedRights, stricter } from './rights.js'
import { children } from './spawn-table.js'

/** Depth of a session that a person or a job started is 0. */
export const MAX_DEPTH = 1
const MAX_CHILDREN = 5
const MAX_TTL_SECONDS = 7 * 24 * 3600
const RETRY_MS = 5000
/** A session is created before its lineage is stored, so a crash in between leaves one without it. */
const UNFINISHED = 'this spawned session has no end time: the daemon was killed while creating it'
/** Roles that only the daemon assigns. */
const RESERVED_ROLES = ['coordinator']

/** Starts sessions for agents and ends them on time. */
export class SessionSpawner {
  readonly #alarm: Alarm
  readonly #turns = new SerialBy()

  constructor(
    private readonly kernel: K,
    private readonly points: HooksOf<typeof table>,
  ) {
    this.#alarm = new Alarm(kernel.clock, { retryMs: RETRY_MS })
  }

  /** Schedules the end of existing children. */
  start(): void {
    const { sessions } = this.kernel.needs
    for (const { session_id: id, expires_at } of children.all(this.kernel.db))
      if (sessions.get(id)) this.#alarm.set(id, expires_at)
  }

  /** Ends expired children until the signal aborts. */
  reap(signal: AbortSignal): Promise<void> {
    const fire = async (ids: readonly string[]) => {
      for (const id of ids) {
        void this.points.ttlExpired.call(id)
        await this.#end(id, 'timeout', 'spawn_ttl_expired')
        void this.points.reaped.call(id)
      }
    }
    const failed = (error: unknown) => this.kernel.log.error(`a spawned session was not ended: ${messageOf(error)}`)
    return this.#alarm.run(signal, { fire, failed })
  }

  /** Children that have not ended. */
  living(parent: string): readonly string[] {
    const { sessions } = this.kernel.needs
    return children
      .all(this.kernel.db, { parent_id: parent })
      .flatMap(({ session_id: id }) => (isOver(sessions.get(id)) ? [] : [id]))
  }

  /** Ends the children that stop with their parent. */
  async parentStopped({ id }: SessionInfo): Promise<void> {
    for (const child of children.all(this.kernel.db, { parent_id: id })) {
      if (!child.auto_stop) continue
      void this.points.parentStopped.call(child.session_id)
      await this.#end(child.session_id, 'user_canceled', 'spawn_parent_stopped')
    }
  }

  /** Refuses to restart a child whose time is over or whose parent has stopped. */
  judge({ session }: SessionLaunch): Fault | undefined {
    const child = children.get(this.kernel.db, { session_id: session.id })
    if (!child) return session.type === 'spawned' ? SpawnErrors.spawn_ended(UNFINISHED) : undefined
    if (child.expires_at <= this.kernel.clock.now()) return SpawnErrors.spawn_ended()
    const isAlone = child.auto_stop && isOver(this.kernel.needs.sessions.get(child.parent_id))
    return isAlone ? SpawnErrors.spawn_ended('the session that spawned this one has stopped') : undefined
  }

  /** Serializes spawns per parent, so that the limit and the idempotency key are checked without a race. */
  spawn(parent: SessionInfo, body: SpawnBody): Promise<SpawnReply> {
    return this.#turns.run(parent.id, () => this.#spawn(parent, body))
  }

  async #spawn(parent: SessionInfo, body: SpawnBody): Promise<SpawnReply> {
    const { kernel } = this
    const { sessions, workspaces, agents } = kernel.needs
    const { idempotency_key: key, ...request } = body
    const digest = createHash('sha256').update(canonicalJson(request)).digest('hex')
    const before =
      key === undefined ? undefined : children.get(kernel.db, { parent_id: parent.id, idempotency_key: key })
    if (before) {
      if (before.digest !== digest)
        throw SpawnErrors.spawn_key_conflict(`the idempotency key ${key} was used for session ${before.session_id}`)
      return this.#reply(before.session_id)
    }
    this.#check(parent, body)
    const workspace = workspaces.get(parent.workspaceId)
    if (!workspace) throw SpawnErrors.spawn_parent_stopped('the workspace of this session no longer exists')
    const definition = await agents.find(parent.agentName, workspace)
    const { agent_name: agentName, permissions } = body
    const wish = await this.points.preCreate.run({ agentName, role: body.spawn_role, permissions }, parent)
    if (wish.deny !== undefined) throw SessionErrors.hook_denied(wish.deny)
    const rights = await checkedRights(wish.permissions, { session: parent, definition, workspace })
    const plan = await agents.plan(body.agent_name, workspace).catch(error => {
      if (!(error instanceof Fault) || error.code !== 'agent_not_found') throw error
      throw SpawnErrors.spawn_invalid(error.message, { next: command('agent list') })
    })
    if (body.provider !== undefined && body.provider !== plan.provider) {
      throw SpawnErrors.spawn_invalid(`the agent ${body.agent_name} runs with provider ${plan.provider}`)
    }
    const expiresAt = kernel.clock.now() + body.ttl_seconds * 1000
    const { id } = await sessions.create({
      workspaceId: workspace.id,
      agentName: body.agent_name,
      name: body.name,
      type: 'spawned',
      model: body.model,
      speed: body.speed,
      permissions: stricter(parent.permissions ?? 'approve-reads', plan.permissions),
      sandbox: rights.sandbox_profiles[0],
      parent: parent.id,
      rights: { roots: rights.workspace_paths, mcpServers: rights.mcp_servers, tools: rights.tools },
      lineage: {
        auto_stop_on_parent: body.auto_stop_on_parent,
        parent_session_id: parent.id,
        root_session_id: parent.id,
        permission_policy: rights,
        spawn_budget: { max_children: 0, max_depth: MAX_DEPTH, ttl_seconds: body.ttl_seconds },
        spawn_depth: 1,
        spawn_role: body.spawn_role,
        ttl_expires_at: iso(expiresAt),
      },
      actor: kernel.actor,
    })
    try {
      const child = {
        session_id: id,
        parent_id: parent.id,
        expires_at: expiresAt,
        digest,
        idempotency_key: key ?? null,
      }
      const overlay = body.prompt_overlay
      await sessions.whileIdle(id, session =>
        kernel.db.tx(t => {
          children.insert(t, { ...child, auto_stop: body.auto_stop_on_parent })
          if (overlay) session.brief(t, 'spawn', overlay)
        }),
      )
    } catch (error) {
      await sessions.stop(id, { reason: 'error', detail: 'spawn failed' })
      throw error
    }
    this.#alarm.set(id, expiresAt)
    void this.points.created.call(id, parent)
    // The parent may have stopped while its child was created.
    if (isOver(sessions.get(parent.id))) await this.parentStopped(parent)
    return this.#reply(id)
  }

  #check(parent: SessionInfo, { ttl_seconds: ttl, spawn_role: role }: SpawnBody): void {
    if (isOver(parent)) throw SpawnErrors.spawn_parent_stopped()
    if (parent.lineage !== undefined || parent.type === 'spawned') {
      throw SpawnErrors.spawn_depth_exceeded(
        `session ${parent.id} was itself spawned; the maximum depth is ${MAX_DEPTH}`,
      )
    }
    if (ttl <= 0 || ttl > MAX_TTL_SECONDS) {
      throw SpawnErrors.spawn_invalid(`ttl_seconds is ${ttl}; it has to be 1 to ${MAX_TTL_SECONDS}`)
    }
    if (RESERVED_ROLES.includes(role)) throw SpawnErrors.spawn_invalid(`the role ${role} is reserved for the daemon`)
    const living = this.living(parent.id).length
    const most = this.mostChildren(parent)
    if (living >= most) {
      throw SpawnErrors.spawn_children_exceeded(`session ${parent.id} has ${living} of at most ${most} children`)
    }
  }

  /** Maximum number of concurrent children of a session. */
  mostChildren({ type }: SessionInfo): number {
    if (type !== 'coordinator') return MAX_CHILDREN
    return Number(this.kernel.needs.configuration.explain('roles.coordinator.max_children').value)
  }

  #reply(id: string): SpawnReply {
    const session = this.kernel.needs.sessions.shown(id)
    const lineage = session?.lineage
    if (!session || !lineage) throw SpawnErrors.spawn_invalid(`session ${id} cannot be shown`)
    return { spawn: { lineage, permissions: lineage.permission_policy, session } }
  }

  async #end(id: string, reason: 'timeout' | 'user_canceled', detail: string): Promise<void> {
    this.#alarm.set(id, undefined)
    if (isOver(this.kernel.needs.sessions.get(id))) return
    await this.kernel.needs.sessions.stop(id, { reason, detail })
  }
}

const isOver = (session: SessionInfo | undefined) => session === undefined || session.state !== 'active'
