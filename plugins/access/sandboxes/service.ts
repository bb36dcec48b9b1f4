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
import { real, tooWide, viewOf } from './places.js'
import { probe, type Support } from './probe.js'
import { BACKEND, type Profile, profileOf } from './profiles.js'
import { refusalOf } from './refusal.js'
import { DefaultSandbox, Sandboxes } from './settings.js'

/** Milliseconds after which a machine without sandboxes is looked at again. */
const AGAIN_MS = 10_000
/** Milliseconds that doctor waits for the first trial. */
const CHECK_MS = 4000
type Sandboxed = Extract<SessionConfinement, { kind: 'sandbox' }>

/** Which sessions run in a sandbox, and what they see in it. */
export class SandboxesService {
  readonly points: HooksOf<typeof points>
  readonly #guards: KeptGuards
  /** By session, as long as its agent runs. */
  readonly #open = new Map<string, OpenSandbox>()
  #support: { readonly at: number; readonly found: Promise<Support> } | undefined

  constructor(private readonly kernel: K) {
    this.points = kernel.hooks.of(points)
    this.#guards = new KeptGuards(kernel)
  }

  start(): Promise<void> {
    return this.#guards.start()
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
    const owner = ownerOf(needs.extensions.current, about.broughtBy)
    const chosen = about.sandbox ?? (inherited && configured === NO_SANDBOX ? undefined : configured)
    const isForced = owner?.confined && (chosen ?? NO_SANDBOX) === NO_SANDBOX
    const asked = isForced ? (inherited?.profile ?? DEFAULT_PROFILE) : chosen
    if (asked === NO_SANDBOX) return inherited && SandboxErrors.sandbox_weaker()
    const isUsual =
      about.unattended || about.permissions === 'approve-all' || ['spawned', 'dream'].includes(about.session.type)
    const name = asked ?? inherited?.profile ?? (isUsual ? DEFAULT_PROFILE : undefined)
    if (name === undefined) return undefined
    const profile = this.#profile(name)
    if ('problem' in profile) return profile.fault
    if (inherited && isWeaker(profile, inherited)) return SandboxErrors.sandbox_weaker()
    const reason = await this.#obstacle(workspace ? [workspace.rootDir, ...workspace.addDirs] : [])
    if (reason !== undefined) {
      // Nobody asked for one: who wants the session all the same says so.
      const isOwnWish = asked !== undefined || inherited !== undefined
      return isOwnWish ? unusable(reason, owner?.confined ? owner.name : undefined) : refusalOf(about, reason)
    }
    about.confine({ kind: 'sandbox', backend: BACKEND, profile: name, network: profile.network })
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
    await this.#guards.keep(session.id, view.guards)
    // Its socket and its keys stay the agent's own.
    const shared = view.mounts.filter(({ path }) => path !== launch.env.SVC_SOCKET)
    const place = { sessionId: session.id, env: launch.env, roots: await Promise.all(roots.map(real)) }
    const enclosureOfOthers = { ...enclosure, mounts: shared, env: profile.env }
    const opened = new OpenSandbox(this.kernel, needs.processes, { ...place, enclosure: enclosureOfOthers })
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

  /** Nothing of a session runs any more. */
  async release(id: string): Promise<void> {
    await this.#guards.release(id, () => this.#closed(id))
  }

  /** Doctor: whether sandboxes work, and what weakens them. */
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

  /** What others run inside ends before anything is put aside. */
  #cleanUp(id: string, opened: OpenSandbox): Promise<void> {
    return this.#guards.putAside(id, () => this.#closed(id, opened))
  }

  async #closed(id: string, opened = this.#open.get(id)): Promise<void> {
    if (this.#open.get(id) === opened) this.#open.delete(id)
    await opened?.close()
  }

  /** How programs run that are started for a session outside of its own processes; undefined: it has no sandbox. */
  ofSession(id: string): ProgramSandbox | undefined {
    const { confinement } = this.kernel.needs.sessions.get(id) ?? {}
    if (confinement?.kind !== 'sandbox') return undefined
    const { profile, network } = confinement
    return { profile, network, roots: this.#open.get(id)?.roots ?? [] }
  }

  /** Puts a sandbox around a program that is no agent. Throws `sandbox_unusable` (422), `sandbox_profile_not_found` (422). */
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

/** The network is what one profile can have more of than another. */
const isWeaker = ({ network }: Profile, inherited: Sandboxed) => network === 'host' && inherited.network === 'none'

const userHome = (env: Readonly<Record<string, string | undefined>>) => env.HOME || os.homedir()
