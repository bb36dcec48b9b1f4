import os from 'node:os'
import { resolveSecret } from '../../../kernel/kit/secret-ref.js'
import { type Fault, type HooksOf, within } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type { ExecInSandboxReply, Sandbox, SandboxReply } from '../../../schemas/sessions/sandboxes.js'
import { ownerOf } from '../../delivery/extensions/api.js'
import { TcpSettings } from '../../platform/tcp/api.js'
import {
  type NewSession,
  type SessionConfinement,
  SessionErrors,
  type SessionInfo,
  type SessionLaunch,
} from '../../work/sessions/api.js'
import {
  DEFAULT_PROFILE,
  type EnclosedProgram,
  NO_SANDBOX,
  type ProgramCommand,
  type ProgramSandbox,
  points,
  SandboxErrors,
  unusable,
} from './api.js'
import { enclosed } from './bubblewrap.js'
import { sandboxItems } from './doctor.js'
import { KeptGuards } from './kept-guards.js'
import { showing, sightOf } from './mounts.js'
import type { K } from './needs.js'
import { type Exec, OpenSandbox } from './open-sandbox.js'
import { probe, type Support } from './probe.js'
import { BACKEND, type Profile, profileOf } from './profiles.js'
import { refusalOf } from './refusal.js'
import { DefaultSandbox, Sandboxes } from './settings.js'
import { real, tooWide, viewOf } from './view.js'

/** Milliseconds before a failed probe is repeated. */
const AGAIN_MS = 10_000
/** Longest wait in milliseconds of doctor for the first probe. */
const CHECK_MS = 4000
type Sandboxed = Extract<SessionConfinement, { kind: 'sandbox' }>

/** Chooses the sandboxes of sessions and applies them. */
export class SandboxesService {
  readonly points: HooksOf<typeof points>
  readonly #guards: KeptGuards
  /** Open sandboxes by session, while the agent runs. */
  readonly #open = new Map<string, OpenSandbox>()
  #support: { readonly at: number; readonly found: Promise<Support> } | undefined

  constructor(private readonly kernel: K) {
    this.points = kernel.hooks.of(points)
    this.#guards = new KeptGuards(kernel)
  }

  start(): Promise<void> {
    return this.#guards.start()
  }

  /** Whether sandboxes work here. A successful probe is not repeated. */
  async support(): Promise<Support> {
    const { clock, needs, home } = this.kernel
    const now = clock.monotonic()
    const known = await this.#support?.found
    if (this.#support && known && (known.works || now - this.#support.at < AGAIN_MS)) return known
    const found = needs.providers.executable('bwrap').then(file => probe(needs.processes, clock, file, home.root))
    this.#support = { at: now, found }
    return found
  }

  /** Chooses the confinement of a new session. */
  async choose(about: NewSession): Promise<Fault | undefined> {
    const { needs, config } = this.kernel
    const workspace = needs.workspaces.get(about.session.workspaceId)
    const parent = about.parent === undefined ? undefined : needs.sessions.get(about.parent)?.confinement
    const inherited = parent?.kind === 'sandbox' ? parent : undefined
    const configured = workspace?.sandboxRef || config.get(DefaultSandbox) || undefined
    const owner = ownerOf(needs.extensions.current, about.broughtBy)
    const chosen = about.sandbox ?? (inherited && configured === NO_SANDBOX ? undefined : configured)
    const isForced = owner?.confined && (chosen ?? NO_SANDBOX) === NO_SANDBOX
    const requestedProfile = isForced ? (inherited?.profile ?? DEFAULT_PROFILE) : chosen
    if (requestedProfile === NO_SANDBOX) return inherited && SandboxErrors.sandbox_weaker()
    const isUsual =
      about.unattended || about.permissions === 'approve-all' || ['spawned', 'dream'].includes(about.session.type)
    const name = requestedProfile ?? inherited?.profile ?? (isUsual ? DEFAULT_PROFILE : undefined)
    if (name === undefined) return undefined
    const profile = this.#profile(name)
    if ('problem' in profile) return profile.fault
    if (inherited && isWeaker(profile, inherited)) return SandboxErrors.sandbox_weaker()
    const reason = await this.#obstacle(workspace ? [workspace.rootDir, ...workspace.addDirs] : [])
    if (reason !== undefined) {
      // The sandbox was a default, so the refusal explains how to proceed without one.
      const isOwnWish = requestedProfile !== undefined || inherited !== undefined
      return isOwnWish ? unusable(reason, owner?.confined ? owner.name : undefined) : refusalOf(about, reason)
    }
    about.confine({ kind: 'sandbox', backend: BACKEND, profile: name, network: profile.network })
    return undefined
  }

  /** Wraps the commands of a session in its sandbox. */
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
    // The network is that of the session's creation, even if the profile has changed since.
    const enclosure = {
      ...support,
      mounts: view.mounts,
      network: confinement.network,
      env: { ...profile.env, ...(await this.#secrets(profile)) },
    }
    await this.#guards.keep(session.id, view.guards)
    // Commands of other callers get neither the agent's socket nor its secrets.
    const shared = view.mounts.filter(({ path }) => path !== launch.env.SVC_SOCKET)
    const context = { sessionId: session.id, env: launch.env, roots: await Promise.all(roots.map(real)) }
    const enclosureOfOthers = { ...enclosure, mounts: shared, env: profile.env }
    const opened = new OpenSandbox(this.kernel, needs.processes, { ...context, enclosure: enclosureOfOthers })
    this.#open.set(session.id, opened)
    launch.around(command => enclosed(enclosure, command))
    launch.protect(view.guarded)
    launch.sees(sightOf(view.mounts))
    launch.afterwards(() => this.#cleanUp(session.id, opened))
    void this.points.ready.call({ backend, profile: named }, session)
    return undefined
  }

  /** A session has stopped. */
  async stopped(session: SessionInfo): Promise<void> {
    await this.release(session.id)
    if (session.confinement?.kind === 'sandbox') void this.points.stop.call(session)
  }

  /** Cleans up when no process of a session runs any more. */
  async release(id: string): Promise<void> {
    await this.#guards.release(id, () => this.#closed(id))
  }

  /** Doctor items: whether sandboxes work, and settings that weaken them. */
  async check(): Promise<DiagnosticItem[]> {
    const support = await within(this.kernel.clock, CHECK_MS, this.support()).catch(() => undefined)
    const { config } = this.kernel
    const problems = Object.keys(config.get(Sandboxes)).flatMap(name => {
      const profile = this.#profile(name)
      return 'problem' in profile ? [{ name, problem: profile.problem }] : []
    })
    const isOff = config.get(DefaultSandbox) === NO_SANDBOX
    return sandboxItems({ support, problems, isOff, trustsOwnUser: config.get(TcpSettings.trustOwnUser) })
  }

  #profile(name: string): Profile | { readonly problem: string; readonly fault: Fault } {
    const found = profileOf(name, this.kernel.config.get(Sandboxes))
    if (!found) {
      const fault = SandboxErrors.sandbox_profile_not_found(`there is no sandbox profile ${name}`)
      return { problem: fault.message, fault }
    }
    return 'problem' in found ? { ...found, fault: SandboxErrors.sandbox_unusable(found.problem) } : found
  }

  /** Why these folders cannot be used in a sandbox here. */
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

  /** The sandboxes of sessions that are not stopped. */
  list(workspaceId: string | undefined): Sandbox[] {
    return this.kernel.needs.sessions
      .unstopped()
      .filter(session => workspaceId === undefined || session.workspaceId === workspaceId)
      .flatMap(session => this.#sandboxOf(session) ?? [])
      .sort((a, b) => (a.session_id < b.session_id ? -1 : 1))
  }

  /** The sandbox of a session, with its mounts. Throws `sandbox_not_found` (404). */
  info(id: string): SandboxReply {
    const session = this.kernel.needs.sessions.get(id)
    const sandbox = session && session.state !== 'stopped' ? this.#sandboxOf(session) : undefined
    if (!sandbox) throw SandboxErrors.sandbox_not_found()
    const open = this.#open.get(id)
    const mounts = (open?.mounts ?? []).map(({ kind, path }) => ({ path, access: kind === 'blank' ? 'empty' : kind }))
    return { sandbox: { ...sandbox, mounts, commands: open?.commands ?? 0 } }
  }

  /**
   * Runs a command in the sandbox of a session. Throws `sandbox_not_found` (404), `sandbox_not_running` (409) and faults of {@link
   * OpenSandbox.exec}.
   */
  exec(id: string, command: Exec): Promise<ExecInSandboxReply> {
    this.info(id)
    const open = this.#open.get(id)
    if (!open) throw SandboxErrors.sandbox_not_running()
    return open.exec(command)
  }

  #sandboxOf({ id, agentName, workspaceId, confinement }: SessionInfo): Sandbox | undefined {
    if (confinement?.kind !== 'sandbox') return undefined
    const { backend, profile, network } = confinement
    const state = this.#open.has(id) ? 'running' : 'prepared'
    const about = { sandbox_id: id, session_id: id, agent_name: agentName, workspace_id: workspaceId }
    return { ...about, backend, profile, network, state }
  }

  /** Ends commands of other callers first, then moves guarded files aside. */
  #cleanUp(id: string, opened: OpenSandbox): Promise<void> {
    return this.#guards.putAside(id, () => this.#closed(id, opened))
  }

  async #closed(id: string, opened = this.#open.get(id)): Promise<void> {
    if (this.#open.get(id) === opened) this.#open.delete(id)
    await opened?.close()
  }

  /** Confinement for programs started on behalf of a session; undefined if the session has no sandbox. */
  ofSession(id: string): ProgramSandbox | undefined {
    const { confinement } = this.kernel.needs.sessions.get(id) ?? {}
    if (confinement?.kind !== 'sandbox') return undefined
    const { profile, network } = confinement
    return { profile, network, roots: this.#open.get(id)?.roots ?? [] }
  }

  /** Encloses a program that is not an agent. Throws `sandbox_unusable` (422), `sandbox_profile_not_found` (422). */
  async encloseProgram(id: string, sandbox: ProgramSandbox, command: ProgramCommand): Promise<EnclosedProgram> {
    const profile = this.#profile(sandbox.profile)
    if ('problem' in profile) throw profile.fault
    const support = await this.support()
    const reason = support.works ? await this.#obstacle(sandbox.roots) : support.reason
    if (!support.works || reason !== undefined) throw unusable(reason, sandbox.fromCatalog)
    const { env, home, needs } = this.kernel
    const roots = await Promise.all(sandbox.roots.map(real))
    const shows = await Promise.all((sandbox.shows ?? []).map(real))
    const keeps = await Promise.all((sandbox.keeps ?? []).map(real))
    const [cwd = '/tmp'] = [...roots, ...shows]
    const none = { mcpServers: [], bin: undefined, socket: undefined, provider: undefined, programOf: () => undefined }
    const view = await viewOf({
      ...{ ...none, ...command, cwd, roots, providers: needs.providers.list() },
      userHome: userHome(env),
      daemonHome: home.root,
      workspaces: needs.workspaces.list().map(({ rootDir }) => rootDir),
    })
    await this.#guards.keep(id, view.guards)
    const network = [sandbox.network, profile.network].includes('none') ? 'none' : 'host'
    const enclosure = { ...support, mounts: showing(view.mounts, shows, keeps), network, env: profile.env } as const
    return { ...enclosed(enclosure, { ...command, cwd }), ended: () => this.#guards.release(id) }
  }
}

/** Profiles differ in strictness only by their network. */
const isWeaker = ({ network }: Profile, inherited: Sandboxed) => network === 'host' && inherited.network === 'none'

const userHome = (env: Readonly<Record<string, string | undefined>>) => env.HOME || os.homedir()
