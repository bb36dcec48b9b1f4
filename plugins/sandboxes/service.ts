import { realpath } from 'node:fs/promises'
import os from 'node:os'
import { resolveSecret } from '../../kernel/kit/secret-ref.js'
import { SerialBy } from '../../kernel/kit/serial.js'
import { type Fault, messageOf, type PluginKernel, within } from '../../kernel/plugin.js'
import type { DiagnosticItem } from '../../schemas/kernel/diagnostic.js'
import type { ExecInSandboxReply, Sandbox, SandboxReply } from '../../schemas/sessions/sandboxes.js'
import { finding } from '../daemon/api.js'
import { TrustOwnUser } from '../own-user/api.js'
import type { Processes } from '../processes/api.js'
import type { Providers } from '../providers/api.js'
import {
  type NewSession,
  type SessionConfinement,
  SessionErrors,
  type SessionInfo,
  type SessionLaunch,
  type Sessions,
} from '../sessions/api.js'
import type { Workspaces } from '../workspaces/api.js'
import { DEFAULT_PROFILE, NO_SANDBOX, SandboxErrors } from './api.js'
import { enclosed } from './bubblewrap.js'
import { cleanUp, type Guard } from './guard.js'
import { SandboxHooks } from './hooks.js'
import { type Exec, OpenSandbox } from './open-sandbox.js'
import { tooWide, viewOf } from './places.js'
import { probe, type Support } from './probe.js'
import { BACKEND, type Profile, profileOf } from './profiles.js'
import { DefaultSandbox, Sandboxes } from './settings.js'

/** Milliseconds after which a machine without sandboxes is looked at again. */
const AGAIN_MS = 10_000
/** Milliseconds that doctor waits for the first trial. */
const CHECK_MS = 4000
type Sandboxed = Extract<SessionConfinement, { kind: 'sandbox' }>

/** Guards of sessions whose processes may still run: a daemon that was killed cleans up after them when it starts again. */
export const guardTable = `CREATE TABLE sandboxes_guard (
  session_id TEXT PRIMARY KEY,
  guards TEXT NOT NULL
) STRICT`

export type SandboxNeeds = {
  sessions: typeof Sessions
  providers: typeof Providers
  workspaces: typeof Workspaces
  processes: typeof Processes
}

/** Which sessions run in a sandbox, and what they see in it. */
export class SandboxesService {
  readonly points: SandboxHooks
  readonly #turns = new SerialBy()
  /** By session, as long as its agent runs. */
  readonly #open = new Map<string, OpenSandbox>()
  #support: { readonly at: number; readonly found: Promise<Support> } | undefined

  constructor(private readonly kernel: PluginKernel<SandboxNeeds>) {
    this.points = new SandboxHooks(kernel)
  }

  async start(): Promise<void> {
    for (const { session_id: id } of this.kernel.db.all<{ session_id: string }>(
      'SELECT session_id FROM sandboxes_guard',
    ))
      await this.release(id)
  }

  /** Whether sandboxes can be started here. What works is asked once. */
  async support(): Promise<Support> {
    const { clock, needs, home } = this.kernel
    const now = clock.monotonic()
    const known = await this.#support?.found
    if (this.#support && known && (known.works || now - this.#support.at < AGAIN_MS)) return known
    const found = needs.providers.executable('bwrap').then(file => probe(needs.processes, clock, file, home.root))
    this.#support = { at: now, found }
    return found
  }

  /** Decides how a new session is confined. */
  async choose(about: NewSession): Promise<Fault | undefined> {
    const { needs, config } = this.kernel
    const workspace = needs.workspaces.get(about.session.workspaceId)
    const parent = about.parent === undefined ? undefined : needs.sessions.get(about.parent)?.confinement
    const inherited = parent?.kind === 'sandbox' ? parent : undefined
    const configured = workspace?.sandboxRef || config.get(DefaultSandbox) || undefined
    const asked = about.sandbox ?? (inherited && configured === NO_SANDBOX ? undefined : configured)
    if (asked === NO_SANDBOX) return inherited && SandboxErrors.sandbox_weaker()
    const isUsual =
      about.unattended || about.permissions === 'approve-all' || ['spawned', 'dream'].includes(about.session.type)
    const name = asked ?? inherited?.profile ?? (isUsual ? DEFAULT_PROFILE : undefined)
    if (name === undefined) return undefined
    const profile = this.#profile(name)
    if ('problem' in profile) return profile.fault
    if (inherited && isWeaker(profile, inherited)) return SandboxErrors.sandbox_weaker()
    const reason = await this.#obstacle(workspace ? [workspace.rootDir, ...workspace.addDirs] : [])
    if (reason === undefined)
      about.confine({ kind: 'sandbox', backend: BACKEND, profile: name, network: profile.network })
    else if (asked !== undefined || inherited) return SandboxErrors.sandbox_unusable(reason)
    else about.confine({ kind: 'none', reason })
    return undefined
  }

  /** Puts the sandbox of a session around its commands. */
  async enclose(launch: SessionLaunch): Promise<Fault | undefined> {
    const { session, confinement, roots } = launch
    if (confinement?.kind !== 'sandbox') return undefined
    const support = await this.support()
    const reason = support.works ? await this.#obstacle(roots) : support.reason
    if (!support.works || reason !== undefined) return SandboxErrors.sandbox_unusable(reason)
    const profile = this.#profile(confinement.profile)
    if ('problem' in profile) return profile.fault
    const { backend, profile: named } = confinement
    const { deny } = await this.points.prepare.run({ backend, profile: named }, session)
    if (deny !== undefined) return SessionErrors.hook_denied(deny)
    const { env, home, needs } = this.kernel
    const view = await viewOf({
      ...launch,
      providers: needs.providers.list(),
      programOf: argv => needs.providers.programOf(argv),
      userHome: userHome(env),
      daemonHome: home.root,
      bin: env.SVC_BIN_DIR,
      socket: launch.env.SVC_SOCKET,
      workspaces: needs.workspaces.list().map(({ rootDir }) => rootDir),
    })
    // The network is the one that it was made with, whatever the profile says by now.
    const enclosure = {
      ...support,
      mounts: view.mounts,
      network: confinement.network,
      env: { ...profile.env, ...(await this.#secrets(profile)) },
    }
    await this.#keep(session.id, view.guards)
    // Its socket and its keys stay the agent's own.
    const shared = view.mounts.filter(({ path }) => path !== launch.env.SVC_SOCKET)
    const place = { sessionId: session.id, env: launch.env, roots: await Promise.all(roots.map(real)) }
    const enclosureOfOthers = { ...enclosure, mounts: shared, env: profile.env }
    const opened = new OpenSandbox(this.kernel, needs.processes, { ...place, enclosure: enclosureOfOthers })
    this.#open.set(session.id, opened)
    launch.around(command => enclosed(enclosure, command))
    launch.protect(view.guarded)
    launch.afterwards(() => this.#cleanUp(session.id, opened))
    void this.points.ready.call({ backend, profile: named }, session)
    return undefined
  }

  /** A session has stopped. */
  async stopped(session: SessionInfo): Promise<void> {
    await this.release(session.id)
    if (session.confinement?.kind === 'sandbox') void this.points.stop.call(session)
  }

  /** Nothing of a session runs any more. */
  async release(id: string): Promise<void> {
    await this.#cleanUp(id)
    await this.kernel.db.tx(t => void t.run('DELETE FROM sandboxes_guard WHERE session_id = ?', [id]))
  }

  /** Doctor: whether sandboxes work, and what weakens them. */
  async check(): Promise<DiagnosticItem[]> {
    const support = await within(this.kernel.clock, CHECK_MS, this.support()).catch(() => undefined)
    const item = { id: 'sandboxes', category: 'sandboxes', title: 'Sandboxes' }
    if (!support) {
      const message = 'whether sandboxes work here is being tried; ask again'
      return [finding({ ...item, code: 'sandbox_unknown', severity: 'info', message })]
    }
    if (!support.works) {
      const text = `agents run without a sandbox, jobs and approve-all included: ${support.reason}`
      return [finding({ ...item, code: 'sandbox_unavailable', severity: 'warning', message: text })]
    }
    const text = `${support.program} works: jobs, spawned sessions and sessions with approve-all run in a sandbox`
    const items = [finding({ ...item, code: 'sandbox_ok', severity: 'info', message: text })]
    for (const name of Object.keys(this.kernel.config.get(Sandboxes))) {
      const profile = this.#profile(name)
      if (!('problem' in profile)) continue
      const id = `sandboxes:${name}`
      items.push(
        finding({ ...item, id, code: 'sandbox_profile_unusable', severity: 'warning', message: profile.problem }),
      )
    }
    if (this.kernel.config.get(TrustOwnUser)) {
      const message =
        'http.trust_own_user is on: an agent in a sandbox with the network of the host is served over TCP as the operator'
      const suggested_command = 'svc config set http.trust_own_user false'
      items.push(
        finding({
          ...item,
          id: 'sandboxes:tcp',
          code: 'sandbox_porous',
          severity: 'warning',
          message,
          suggested_command,
        }),
      )
    }
    return items
  }

  #profile(name: string): Profile | { readonly problem: string; readonly fault: Fault } {
    const found = profileOf(name, this.kernel.config.get(Sandboxes))
    if (!found) {
      const fault = SandboxErrors.sandbox_profile_not_found(`there is no sandbox profile ${name}`)
      return { problem: fault.message, fault }
    }
    return 'problem' in found ? { ...found, fault: SandboxErrors.sandbox_unusable(found.problem) } : found
  }

  /** Why these folders cannot be worked on in a sandbox here. */
  async #obstacle(roots: readonly string[]): Promise<string | undefined> {
    const support = await this.support()
    if (!support.works) return support.reason
    return tooWide(await Promise.all(roots.map(real)), [await real(userHome(this.kernel.env))])
  }

  async #secrets({ name, secrets }: Profile): Promise<Record<string, string>> {
    const entries = Object.entries(secrets).map(async ([variable, reference]) => {
      return [variable, await resolveSecret(this.kernel, reference, `${variable} of sandbox profile ${name}`)] as const
    })
    return Object.fromEntries(await Promise.all(entries))
  }

  async #keep(id: string, guards: readonly Guard[]): Promise<void> {
    await this.#cleanUp(id)
    const sql = 'INSERT OR REPLACE INTO sandboxes_guard (session_id, guards) VALUES (?, ?)'
    await this.kernel.db.tx(t => void t.run(sql, [id, JSON.stringify(guards)]))
  }

  /** The sandboxes of sessions that are not stopped. */
  list(workspaceId: string | undefined): Sandbox[] {
    return this.kernel.needs.sessions
      .unstopped()
      .filter(session => workspaceId === undefined || session.workspaceId === workspaceId)
      .flatMap(session => this.#told(session) ?? [])
      .sort((a, b) => (a.session_id < b.session_id ? -1 : 1))
  }

  /** One of them, with what is seen inside. Throws `sandbox_not_found` (404). */
  info(id: string): SandboxReply {
    const session = this.kernel.needs.sessions.get(id)
    const told = session && session.state !== 'stopped' ? this.#told(session) : undefined
    if (!told) throw SandboxErrors.sandbox_not_found()
    const open = this.#open.get(id)
    const mounts = (open?.mounts ?? []).map(({ kind, path }) => ({ path, access: kind === 'blank' ? 'empty' : kind }))
    return { sandbox: { ...told, mounts, commands: open?.commands ?? 0 } }
  }

  /** Runs a command where the agent of a session runs. Throws `sandbox_not_found` (404), `sandbox_not_running` (409) and its own. */
  exec(id: string, command: Exec): Promise<ExecInSandboxReply> {
    this.info(id)
    const open = this.#open.get(id)
    if (!open) throw SandboxErrors.sandbox_not_running()
    return open.exec(command)
  }

  #told({ id, agentName, workspaceId, confinement }: SessionInfo): Sandbox | undefined {
    if (confinement?.kind !== 'sandbox') return undefined
    const { backend, profile, network } = confinement
    const state = this.#open.has(id) ? 'running' : 'prepared'
    const about = { sandbox_id: id, session_id: id, agent_name: agentName, workspace_id: workspaceId }
    return { ...about, backend, profile, network, state }
  }

  /** One at a time: the end of a process and that of its session come together. What others run inside ends first. */
  #cleanUp(id: string, opened = this.#open.get(id)): Promise<void> {
    return this.#turns.run(id, async () => {
      if (this.#open.get(id) === opened) this.#open.delete(id)
      await opened?.close()
      await this.#cleanUpNow(id)
    })
  }

  async #cleanUpNow(id: string): Promise<void> {
    const row = this.kernel.db.get<{ guards: string }>('SELECT guards FROM sandboxes_guard WHERE session_id = ?', [id])
    for (const guard of row ? (JSON.parse(row.guards) as Guard[]) : []) {
      const aside = await cleanUp(guard, id).catch(error => {
        this.kernel.log.error('what a sandboxed agent left could not be put aside', { id, error: messageOf(error) })
        return []
      })
      if (aside.length > 0) {
        const text = 'a sandboxed agent made files that would run code outside of it; they were renamed'
        this.kernel.log.warn(text, { session: id, files: aside.join(', ') })
      }
    }
  }
}

/** The network is what one profile can have more of than another. */
const isWeaker = ({ network }: Profile, inherited: Sandboxed) => network === 'host' && inherited.network === 'none'

const real = (file: string) => realpath(file).catch(() => file)
const userHome = (env: Readonly<Record<string, string | undefined>>) => env.HOME || os.homedir()
