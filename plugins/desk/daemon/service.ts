import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import os from 'node:os'
import { aborted } from '../../../kernel/kit/backoff.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { type SecretResolver, SecretResolvers } from '../../../kernel/kit/secret-ref.js'
import { SecretSet } from '../../../kernel/kit/secret-set.js'
import { KernelSettings, reasonOf } from '../../../kernel/platform.js'
import {
  type Actor,
  anonymous,
  iso,
  KernelErrors,
  messageOf,
  type PluginKernel,
  within,
} from '../../../kernel/plugin.js'
import type { HeldHome } from '../../../schemas/daemon/backup.js'
import type {
  DbCheckpointReply,
  DbSizeReply,
  DbStatusReply,
  DbVerifyReply,
  DoctorQuery,
  DoctorReply,
  IdentityReply,
  PluginListReply,
  PluginQuery,
  PluginReply,
  StatusQuery,
  StatusReply,
} from '../../../schemas/daemon.js'
import { diskHealth } from '../../platform/disk/api.js'
import { inspectProcess } from '../../platform/processes/api.js'
import {
  type Check,
  Checks,
  DaemonActive,
  type DaemonApi,
  DaemonDraining,
  DaemonErrors,
  DaemonStarted,
  HomeConfirmed,
  KnownNames,
  points,
  StatusMembers,
  type StatusScope,
} from './api.js'
import {
  configItems,
  configState,
  daemonItems,
  faultItems,
  heldItems,
  heldText,
  pluginItems,
  reconcileItems,
  resolverItems,
  safeModeItems,
  storeItems,
  tcpItems,
} from './checks.js'
import { databaseStatus, schemaStreams } from './database.js'
import { runDoctor } from './doctor.js'
import { wentTo } from './former-plugins.js'
import { returnFreeMemory } from './free-memory.js'
import { Hold, safeModeReason } from './hold.js'
import { logItems, permissionItems, processItems } from './home-checks.js'
import type { needs } from './needs.js'
import { nodeItems } from './node-release.js'
import { pluginDetail, pluginSummary } from './plugins.js'
import { ownServiceOwner, serviceItems } from './service-check.js'
import { absent, emptyStatus, mergeMember, reconcileStatus, socketPath, tcpAddress, tcpState } from './status.js'
import { offersOf } from './surface.js'
import { variablesOf } from './variables.js'

/** Milliseconds before a status member times out. */
const MEMBER_DEADLINE_MS = 2000

/** State of admission. The drain flag is kept in memory and ends with the process. */
type Admission = 'active' | 'draining' | 'closed'

/** Milliseconds after boot until the memory of the start is returned to the system. */
const SETTLED_MS = 4_000

/** Admission of new work, and the status and diagnostics of the daemon. */
export class DaemonService implements DaemonApi {
  readonly admission
  #admission: Admission = 'active'
  #verifying: Promise<DbVerifyReply> | undefined
  #measuring: Promise<DbSizeReply> | undefined
  readonly #hold: Hold

  readonly reports: DaemonApi['reports'] = {
    status: query => this.status(query),
    member: path => this.#member(path),
    doctor: (query, signal) => this.doctor(query, signal),
  }
  readonly variables: SecretResolver
  /** Values of environment variables that were resolved as secrets. */
  readonly hidden = new SecretSet()

  constructor(private readonly kernel: PluginKernel<typeof needs>) {
    this.admission = kernel.hooks.of(points).admission
    this.variables = variablesOf(kernel.env, this.hidden)
    this.#hold = new Hold(kernel.home)
  }

  start(): Promise<void> {
    return this.#hold.start()
  }

  get held(): boolean {
    return this.#hold.isHeld
  }

  released(signal: AbortSignal): Promise<boolean> {
    return this.#hold.released(signal)
  }

  hold(): HeldHome | undefined {
    return this.#hold.about
  }

  async confirm(actor: Actor): Promise<void> {
    if (!this.held) throw DaemonErrors.home_not_held()
    await this.kernel.db.tx(t => this.kernel.needs.events.emit(t, HomeConfirmed, {}, { actor }))
    await this.#hold.end()
  }

  get draining(): boolean {
    return this.#admission === 'draining'
  }

  async admit(what: string): Promise<void> {
    if (this.#admission === 'draining') throw DaemonErrors.draining()
    if (this.#admission === 'closed') throw KernelErrors.shutting_down()
    if (this.held) throw DaemonErrors.home_held()
    const refused = (await this.kernel.needs.disk.refusal()) ?? (await this.admission.ask(what))
    if (refused) throw refused
  }

  /** Idempotent. The flag is set even if its event cannot be stored. */
  async setDraining(draining: boolean, actor: Actor): Promise<void> {
    if (this.#admission === 'closed') throw KernelErrors.shutting_down()
    if (this.draining === draining) return
    this.#admission = draining ? 'draining' : 'active'
    await this.kernel.db.tx(t =>
      this.kernel.needs.events.emit(t, draining ? DaemonDraining : DaemonActive, {}, { actor }),
    )
  }

  /** First step of a shutdown: no new work begins. */
  closeAdmission(): void {
    this.#admission = 'closed'
  }

  /** Runs after the boot: emits the start event, then waits for the shutdown. */
  async announce(signal: AbortSignal): Promise<void> {
    const { version, pid } = this.kernel.needs.host
    await this.kernel.db.tx(t =>
      this.kernel.needs.events.emit(t, DaemonStarted, { version, pid }, { actor: this.kernel.actor }),
    )
    await this.kernel.clock.sleep(SETTLED_MS, signal).catch(() => {})
    if (!signal.aborted) returnFreeMemory()
    await aborted(signal)
  }

  /** Unknown callers do not see the home: its path reveals the operator's user name. */
  identity(caller: Actor): IdentityReply {
    const { version, pid, startedAt, userHome } = this.kernel.needs.host
    const http = tcpAddress(this.kernel.needs.host, this.kernel.needs.tcp.current)
    const started_at = iso(startedAt)
    return {
      schema_version: '1',
      daemon: {
        pid,
        version,
        started_at,
        http_host: http.host,
        http_port: http.port,
        ...(http.off === undefined ? {} : { http_off: http.off }),
        ...(http.tls ? { http_tls: true } : {}),
        user_home_dir: caller.id === anonymous.id ? '' : userHome,
      },
    }
  }

  /** The whole status: the daemon's own members, merged with those of other plugins. */
  async status(query: StatusQuery): Promise<StatusReply> {
    const workspace = query.workspace_id ?? query.workspace
    return this.#withMembers(this.#ownStatus(), () => true, workspace === undefined ? {} : { workspace })
  }

  async #member<P extends keyof typeof absent>(path: P): Promise<StatusReply[P]> {
    const own = Promise.resolve({ [path]: absent[path]() } as unknown as StatusReply)
    const status = await this.#withMembers(own, name => name === path || name.startsWith(`${path}.`), {})
    return status[path]
  }

  /** Merges the members of other plugins that are wanted. */
  async #withMembers(own: Promise<StatusReply>, isWanted: (path: string) => boolean, about: StatusScope) {
    const members = this.kernel.collect(StatusMembers).filter(({ entry }) => isWanted(entry.path))
    const [status, values] = await Promise.all([
      own,
      Promise.all(members.map(({ owner, entry }) => this.#readMember(owner, entry, about))),
    ])
    members.forEach(({ entry }, at) => {
      mergeMember(status, entry.path, values[at])
    })
    return status
  }

  /** The status of the catalog's files. */
  async database(): Promise<DbStatusReply> {
    return databaseStatus(this.kernel.needs.host.store(), await diskHealth(this.kernel.needs.disk))
  }

  async checkpoint(): Promise<DbCheckpointReply> {
    const { host } = this.kernel.needs
    const { walBytes } = host.store()
    await host.checkpoint()
    return { moved_bytes: walBytes, bytes: host.store().bytes }
  }

  /** Disk usage of the home. Concurrent calls share one measurement, since it reads every row and every folder. */
  size(): Promise<DbSizeReply> {
    this.#measuring ??= this.#measure().finally(() => {
      this.#measuring = undefined
    })
    return this.#measuring
  }

  async #measure(): Promise<DbSizeReply> {
    const { db, clock, home, needs, scope } = this.kernel
    const { measure } = await import('./size.js')
    const owners = needs.host.store().streams.map(({ owner }) => owner)
    return measure({ db, clock, root: home.root, owners, signal: scope.signal })
  }

  /** Checks a copy of the database in a thread. Concurrent calls share one check. */
  verify(): Promise<DbVerifyReply> {
    this.#verifying ??= this.#verify().finally(() => {
      this.#verifying = undefined
    })
    return this.#verifying
  }

  async #verify(): Promise<DbVerifyReply> {
    const [{ readingCopy }, { verifyDatabase }] = await Promise.all([import('./verify-copy.js'), import('./verify.js')])
    const checked = await readingCopy(this.kernel, verifyDatabase)
    return {
      status: checked.some(({ problems }) => problems.length > 0) ? 'damaged' : 'ok',
      checked: checked.map(entry => ({ ...entry, problems: [...entry.problems] })),
    }
  }

  async doctor(query: DoctorQuery, signal: AbortSignal): Promise<DoctorReply> {
    const checks = this.kernel.collect(Checks).map(({ entry }) => entry)
    // Error messages may contain secrets, so the report is redacted.
    return this.kernel.redact.value(await runDoctor(checks, query, this.kernel.clock, signal))
  }

  /** All plugins of the host. */
  plugins(): PluginListReply {
    const faults = this.kernel.needs.host.faults()
    return { plugins: this.kernel.needs.host.plugins().map(info => pluginSummary(info, faults)) }
  }

  /** @throws Fault `plugin_not_found` */
  plugin(name: string, query: PluginQuery): PluginReply {
    const { host } = this.kernel.needs
    const info = host.plugins().find(plugin => plugin.name === name)
    if (info) {
      const surface = query.surface ? { surface: offersOf(info, host) } : {}
      return { plugin: { ...pluginDetail(info, host), ...surface } }
    }
    const where = wentTo(host.formerNames, name)
    if (where === undefined) throw DaemonErrors.plugin_not_found(`no plugin is named ${name}`)
    const successor = host.formerNames[name]
    throw DaemonErrors.plugin_not_found(
      `no plugin is named ${name}: it is now ${where}`,
      successor === undefined || successor === 'kernel' ? {} : { next: command('plugin show', successor) },
    )
  }

  /** The daemon's own doctor probes. */
  checks(): readonly Check[] {
    const { config, home, records, needs } = this.kernel
    const { host } = needs
    return [
      { id: 'daemon.status', category: 'daemon', run: async () => daemonItems(this.#status()) },
      { id: 'daemon.held', category: 'daemon', run: async () => heldItems(this.held, this.hold()) },
      { id: 'daemon.tcp', category: 'daemon', run: async () => tcpItems(tcpState(needs.tcp.current)) },
      { id: 'daemon.safe_mode', category: 'daemon', run: async () => safeModeItems(this.#safeMode, this.held) },
      { id: 'daemon.plugins', category: 'daemon', run: async () => pluginItems(host.plugins()) },
      { id: 'daemon.faults', category: 'daemon', run: async () => faultItems(host.faults()) },
      {
        id: 'resources.reconcile',
        category: 'resources',
        run: async () => reconcileItems(needs.reconcile.health(), records.kinds()),
      },
      {
        id: 'config.settings',
        category: 'config',
        run: async () => {
          const known = this.kernel.collect(KnownNames).flatMap(({ entry }) => entry())
          const named = [KernelSettings.disabled, KernelSettings.replace].map(
            setting => [setting.path, config.get(setting)] as const,
          )
          return configItems(host, configState(needs.configuration.current), named, known)
        },
      },
      { id: 'store.state', category: 'store', run: async () => storeItems(host.store()) },
      {
        id: 'daemon.node',
        category: 'daemon',
        run: async () => nodeItems(process.versions.node, this.kernel.clock.now()),
      },
      {
        id: 'daemon.service',
        category: 'daemon',
        run: async () => serviceItems(ownServiceOwner(home.root, host.userHome, this.kernel.env.XDG_CONFIG_HOME)),
      },
      {
        id: 'daemon.secrets',
        category: 'daemon',
        run: async () => resolverItems(this.kernel.collect(SecretResolvers)),
      },
      {
        id: 'daemon.processes',
        category: 'daemon',
        run: async () => processItems(inspectProcess(this.kernel.needs.host.pid, os.platform()) !== undefined),
      },
      { id: 'home.permissions', category: 'home', run: () => permissionItems(home, socketPath(host)) },
      { id: 'home.log', category: 'home', run: () => logItems(home) },
    ]
  }

  async #ownStatus(): Promise<StatusReply> {
    const { home, clock, records, needs } = this.kernel
    const { host } = needs
    const store = host.store()
    const logAvailable = await this.#logAvailable()
    const { pending, problem } = configState(needs.configuration.current)
    const changed = pending.length > 0
    return emptyStatus({
      generatedAt: iso(clock.now()),
      startedAt: iso(host.startedAt),
      uptimeSeconds: Math.max(0, Math.floor((clock.now() - host.startedAt) / 1000)),
      version: host.version,
      pid: host.pid,
      safeMode: this.#safeMode,
      held: heldText(this.held, this.hold()),
      userHome: host.userHome,
      http: tcpAddress(host, needs.tcp.current),
      socket: socketPath(host) ?? '',
      daemonStatus: this.#status(),
      databaseBytes: store.bytes,
      storeFailed: store.failed !== undefined,
      schemaStreams: schemaStreams(store),
      plugins: host.plugins().map(({ name, version, state }) => ({
        name,
        version,
        status: state.status,
        ...(state.status === 'failed' || state.status === 'waiting' ? { reason: reasonOf(state) } : {}),
      })),
      reconcile: reconcileStatus(needs.reconcile.health(), records.kinds(), iso),
      config: {
        status: problem === undefined ? 'ok' : 'error',
        validated: problem === undefined,
        apply_state: problem !== undefined ? 'failed' : changed ? 'pending_apply' : 'applied',
        restart_required: changed,
        ...(problem === undefined ? {} : { validation_error: problem }),
        config_file: home.config,
        home_dir: home.root,
      },
      logAvailable,
    })
  }

  get #safeMode(): string | undefined {
    return safeModeReason(this.kernel.needs.host.safeMode, this.held)
  }

  /** `draining`, else `degraded` while the store, a plugin or a kind is in trouble, else `ok`. */
  #status(): 'ok' | 'draining' | 'degraded' {
    const { host, disk, reconcile } = this.kernel.needs
    if (this.#admission !== 'active') return 'draining'
    const troubled =
      host.safeMode !== undefined ||
      host.store().failed !== undefined ||
      !disk.writable ||
      host.plugins().some(({ state }) => state.status === 'failed' || state.status === 'waiting') ||
      reconcile.health().some(kind => kind.status !== 'healthy')
    return troubled ? 'degraded' : 'ok'
  }

  async #readMember(
    owner: string,
    member: { readonly path: string; readonly read: (about: StatusScope) => unknown },
    about: StatusScope,
  ): Promise<unknown> {
    try {
      return await within(this.kernel.clock, MEMBER_DEADLINE_MS, (async () => member.read(about))())
    } catch (error) {
      this.kernel.log.warn(`${owner} did not give the status of ${member.path}: ${messageOf(error)}`)
      return member.path.includes('.') ? undefined : { status: 'degraded' }
    }
  }

  async #logAvailable(): Promise<boolean> {
    return access(this.kernel.home.path('logs', 'svc.log'), constants.R_OK).then(
      () => true,
      () => false,
    )
  }
}
