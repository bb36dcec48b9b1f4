import { timingSafeEqual } from 'node:crypto'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { canRunCode } from '../../../kernel/kit/annotations/index.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { SecretSet } from '../../../kernel/kit/secret-set.js'
import { clip } from '../../../kernel/kit/text.js'
import {
  type Actor,
  type Awaitable,
  type Fault,
  type Identified,
  type Incoming,
  KernelErrors,
  type Route,
} from '../../../kernel/plugin.js'
import type { SessionInfo, SessionStart } from '../../work/sessions/api.js'
import { ActingFor, AGENT_SESSION, IdentityErrors } from './api.js'
import { makeFolder, type SocketFolder } from './folder.js'
import type { K } from './needs.js'
import { isOwn } from './own.js'

/** Credentials of a session's process. */
interface Identity {
  readonly session: SessionInfo
  readonly actor: Actor
  readonly token: Buffer
  end(): Promise<void>
}

const TOKEN = /^Bearer +(svc_(ses_[0-9a-f]{16})_[0-9a-f]{64})$/i

/**
 * Milliseconds between two events of a caller for one session and one route that is not audited and runs no code. A worker claims
 * and renews leases many times a minute, and an entry for each would push all others out of the audit.
 */
const EVENT_EVERY_MS = 60_000
/** Maximum number of remembered events; beyond it all are forgotten, and the next requests are recorded again. */
const REMEMBERED = 1000

/** Plugins whose processes are agents or run next to one. */
const OF_AGENTS: readonly string[] = ['sessions', 'sandboxes']

/** Identifies the agent whose process calls the daemon, by the socket of its session or a token in its environment. */
export class IdentityService {
  readonly hidden = new SecretSet()
  readonly #identities = new Map<string, Identity>()
  /** Time of the last event by caller, session and route. */
  readonly #lastEvents = new Map<string, number>()
  #folder: SocketFolder | undefined
  /** Whether the warning about unknown process descent was logged. */
  #isUntold = false

  constructor(private readonly kernel: K) {}

  async start(): Promise<void> {
    const { home, env, scope } = this.kernel
    const runtime = env.XDG_RUNTIME_DIR || env.TMPDIR || '/tmp'
    const folder = await makeFolder(home.path('run'), runtime)
    this.#folder = folder
    scope.defer('sockets of sessions', async () => {
      await Promise.all([...this.#identities.keys()].map(id => this.end(id)))
      await folder.remove()
    })
  }

  /** Creates the socket and token of a session's process before it starts; those of the former process become invalid. */
  async prepare(start: SessionStart, session: SessionInfo): Promise<SessionStart> {
    await this.end(session.id)
    const { ids, needs } = this.kernel
    const token = `svc_${session.id}_${ids.hex(32)}`
    const socket = path.join(this.#folder?.path ?? '', `${session.id}.sock`)
    const actor = actorOf(session)
    const show = this.hidden.hide(token, { name: 'session-token' })
    const close = await needs.sockets(socket, actor)
    const end = async () => {
      const why = IdentityErrors.identity_stale(`session ${session.id} has ended, or its process was replaced`)
      needs.callers.dismiss(caller => caller.origin === AGENT_SESSION && caller.id === session.id, why)
      await close()
      await rm(socket, { force: true })
      show()
    }
    this.#identities.set(session.id, { session, actor, token: Buffer.from(token), end })
    return { ...start, env: { ...start.env, SVC_SOCKET: socket, SVC_SESSION_TOKEN: token } }
  }

  /** Revokes the socket and token of a session's process. */
  async end(id: string): Promise<void> {
    const identity = this.#identities.get(id)
    this.#identities.delete(id)
    await identity?.end()
  }

  /** The agent of a session, identified by the token in its environment. */
  authenticate({ headers }: Incoming): Actor | Fault | undefined {
    const [, token = '', id = ''] = TOKEN.exec(String(headers.authorization ?? '')) ?? []
    if (token === '') return undefined
    const identity = this.#identities.get(id)
    return identity && isSame(identity.token, token) ? identity.actor : IdentityErrors.identity_stale()
  }

  /** Confines an agent to its own session and workspace, and checks the identity headers of any caller. */
  admit(incoming: Identified, route: Route): Awaitable<Fault | undefined> {
    const { actor, connection, headers } = incoming
    const [session, agent] = [headers['x-service-session-id'], headers['x-service-agent']]
    const isAgent = actor.origin === AGENT_SESSION
    if (session !== undefined || agent !== undefined) {
      const refused = isAgent ? this.#mismatch(actor, session, agent) : this.#unproven(incoming, session, agent)
      if (refused) return refused
    }
    if (isAgent) return route.public ? undefined : this.#unauthorized(actor, incoming.url, route)
    const isFor = typeof session === 'string' && typeof agent === 'string' ? { session_id: session, agent } : undefined
    if (isFor) incoming.actFor({ kind: AGENT_SESSION, id: isFor.session_id })
    if (route.method === 'GET') return undefined
    const runsCode = canRunCode(route)
    if (!isFor && (!connection || !runsCode)) return undefined
    const isRare = isFor && !runsCode && route.audited === false
    const key = isRare ? `${actor.id} ${actor.origin} ${isFor.session_id} ${route.method} ${route.path}` : undefined
    if (key !== undefined && this.#isRecent(key)) return undefined
    return this.#atOperatorsDoor(incoming, runsCode, isFor, key)
  }

  /** Whether the last event is recent. The clock may have been set back. */
  #isRecent(key: string): boolean {
    const age = this.kernel.clock.now() - (this.#lastEvents.get(key) ?? Number.NaN)
    return age >= 0 && age < EVENT_EVERY_MS
  }

  async #atOperatorsDoor(
    { actor, connection, id }: Identified,
    runsCode: boolean,
    isFor: { readonly session_id: string; readonly agent: string } | undefined,
    key: string | undefined,
  ): Promise<Fault | undefined> {
    const refused = connection && runsCode ? await this.#descended(connection) : undefined
    if (refused || !isFor) return refused
    const { clock, db, needs } = this.kernel
    let isTold = false
    const written = db.tx(t => {
      needs.events.emit(t, ActingFor, isFor, { actor, cause: id, subject: isFor.session_id })
      isTold = true
    })
    // Commits are ordered: the changes of the request become durable with or after this event, so waiting once is enough.
    if (runsCode || !isTold) await written
    else written.catch(() => this.#lastEvents.clear())
    if (key !== undefined) {
      if (this.#lastEvents.size >= REMEMBERED) this.#lastEvents.clear()
      this.#lastEvents.set(key, clock.now())
    }
    return undefined
  }

  /**
   * An agent without a sandbox can connect like the operator. On routes that can run code or approve the agent's own request, an
   * agent is therefore recognised by the descent of its process. A caller whose process is gone is refused. If the system cannot
   * report descent at all, all callers are accepted: a refusal would lock out the operator.
   */
  async #descended(connection: object): Promise<Fault | undefined> {
    const caller = await this.kernel.needs.processes.callerOf(connection)
    switch (caller.status) {
      case 'started':
        return OF_AGENTS.includes(caller.owner)
          ? IdentityErrors.identity_unauthorized(`this process descends from an agent (${caller.label})`)
          : undefined
      case 'left':
        return IdentityErrors.identity_unauthorized('this process descends from a process that this daemon started')
      case 'gone':
        return IdentityErrors.identity_unauthorized('the process that opened this connection has ended')
      case 'untold':
        if (!this.#isUntold) this.kernel.log.warn(`agents cannot be recognized by their process tree: ${caller.why}`)
        this.#isUntold = true
        return undefined
      default:
        return undefined
    }
  }

  #unauthorized({ id }: Actor, url: string, route: Route): Fault | undefined {
    const workspaceId = this.#identities.get(id)?.session.workspaceId
    if (workspaceId === undefined) return IdentityErrors.identity_stale()
    if (!route.origins?.includes(AGENT_SESSION))
      return IdentityErrors.identity_unauthorized(`an agent may not call ${route.method} ${route.path}`)
    return isOwn(route.path, url, { session: id, workspace: workspaceId })
      ? undefined
      : IdentityErrors.identity_unauthorized('an agent may look at its own session and workspace only')
  }

  #mismatch({ id }: Actor, session: unknown, agent: unknown): Fault | undefined {
    if (session === undefined || agent === undefined) return bothOrNeither()
    const own = this.#identities.get(id)?.session
    return session === id && agent === own?.agentName ? undefined : IdentityErrors.identity_mismatch()
  }

  /** Headers alone prove nothing: a caller that acts for an agent also needs the operator token. */
  #unproven({ headers }: Identified, session: unknown, agent: unknown): Fault | undefined {
    if (typeof session !== 'string' || typeof agent !== 'string') return bothOrNeither()
    let known: SessionInfo | undefined
    try {
      known = this.kernel.needs.sessions.get(session)
    } catch (cause) {
      return IdentityErrors.identity_unavailable(undefined, { cause })
    }
    if (!known || known.state === 'stopped')
      return IdentityErrors.identity_stale(`session ${clip(session, 100)} is stopped or unknown`)
    if (known.agentName !== agent) return IdentityErrors.identity_mismatch()
    if (this.kernel.needs.auth.hasOperatorToken(headers.authorization)) return undefined
    const text = 'headers that name an agent require the operator token'
    return KernelErrors.identity_required(text, { next: 'call over the socket of the session, SVC_SOCKET' })
  }
}

const bothOrNeither = () =>
  KernelErrors.identity_required('send both X-Service-Session-ID and X-Service-Agent, or neither', {
    next: command('session list'),
  })

const isSame = (token: Buffer, candidate: string): boolean => {
  const bytes = Buffer.from(candidate)
  return bytes.length === token.length && timingSafeEqual(bytes, token)
}

const actorOf = ({ id, workspaceId }: SessionInfo): Actor => ({
  kind: 'operator',
  id,
  owner: { kind: AGENT_SESSION, id },
  source: { kind: AGENT_SESSION, id },
  maxScope: { kind: 'workspace', id: workspaceId },
  origin: AGENT_SESSION,
  confined: true,
})
