import { rm } from 'node:fs/promises'
import { systemClock } from './clock.js'
import { Collected } from './contract/bound.js'
import { Fault } from './contract/errors.js'
import type { Report } from './contract/hook.js'
import * as tokens from './contract/kernel-tokens.js'
import { type Consumer, isDropIn } from './contract/plugin.js'
import type { Home, PluginKernel } from './contract/plugin-kernel.js'
import { pluginActor } from './contract/record.js'
import { type Redact, type Redactor, Redactors, type SecretSource } from './contract/redact.js'
import type { Setting } from './contract/surface.js'
import { tellWhere } from './discovery.js'
import { checkSocketPath, prepareHome } from './home.js'
import { hookFactory, type Registry } from './hooks/index.js'
import { collected, kernelHooks } from './hooks/kernel-hooks.js'
import { DropIns, dropInsFor } from './host/drop-ins.js'
import { FaultLog } from './host/fault-log.js'
import { Host } from './host/host.js'
import { runLoops } from './host/loops.js'
import { inheritedBy, migrateTables } from './host/tables.js'
import { Host as HostToken, type HostView, hostView } from './host-view.js'
import { Streams } from './http/carrier.js'
import { Listeners, Servers } from './http/listeners.js'
import { systemIds } from './ids.js'
import type { KernelOptions } from './kernel-options.js'
import { acquireLock } from './lock/index.js'
import { KernelLog } from './log.js'
import { defaultPorts } from './ports.js'
import { RecordStore } from './records/store.js'
import { Redaction } from './redaction.js'
import { OwnedScope } from './scope.js'
import { KernelSettings } from './settings.js'
import { openStore, proveEngine } from './store/index.js'
import { version } from './version.js'
import { LEFT, unconfigured, unwatched } from './without.js'

/** A running kernel. */
export interface Kernel {
  readonly host: HostView & Pick<Host, 'load' | 'unload' | 'reload'> & { readonly report: Report }
  readonly home: Home
  /** A request with the actor of the Unix socket, without a socket. */
  inject(request: tokens.InjectRequest): Promise<tokens.InjectReply>
  /** Value of a setting, including the kernel's own. */
  setting<T>(entry: Setting<T>): T
  /** For output of the embedder itself. */
  readonly redact: Redact
  /** Quiesces, releases, closes the store, then releases the lock. Never rejects; errors are returned. */
  close(): Promise<readonly Error[]>
  /** Resolves when the store failed: nothing is acknowledged any more and the kernel has to be closed. */
  readonly failed: Promise<Error>
}

const SHUTDOWN_MS = 10_000
const RELEASE_MS = 5000

/** Boots a kernel on a home directory: configuration, lock, store, plugins, listeners. A failure undoes the steps before it. */
export async function createKernel(options: KernelOptions): Promise<Kernel> {
  const clock = options.clock ?? systemClock()
  const ids = options.ids ?? systemIds()
  const redact = new Redaction()
  const undo: (() => Promise<unknown>)[] = []
  const errors: Error[] = []
  const rollback = async () => {
    for (const step of undo.splice(0).reverse()) {
      await step().catch(error => errors.push(error instanceof Error ? error : new Error(String(error))))
    }
  }
  // SQLite compiles in other threads while this one loads further code.
  const engine = proveEngine()
  const http = import('./http/transport.js')
  // Their errors surface where they are awaited; until then they must not be unhandled rejections.
  for (const early of [engine, http]) early.catch(() => {})
  try {
    const home = await prepareHome(options.home)
    const surfaces = options.plugins.flatMap(plugin => plugin.surface.settings ?? [])
    const log = new KernelLog(options.log, clock, redact)
    const { warn } = log.of()
    const faults = new FaultLog(clock, owner => log.of(owner))
    const { report } = faults
    const { newCatalog = false, freeBytes, env = {}, startTime, checkReplies, inherited } = options
    const ofCatalog = options.plugins.flatMap(plugin => plugin.surface.ofCatalog ?? [])
    const starting = (port: string) => ({ home, clock, env, newCatalog, freeBytes, ofCatalog, log: log.of(port) })
    const ports = options.ports ?? defaultPorts()
    const keeper = ports.disk?.(starting('disk'))
    const disk = keeper ?? unwatched
    const { room } = disk
    const known = [...(Object.values(KernelSettings) as Setting[]), ...surfaces]
    const config = (await ports.settings?.({ ...starting('settings'), room, known, report })) ?? unconfigured
    log.follow(() => config.get(KernelSettings.logLevel))
    const disabled = config.get(KernelSettings.disabled)
    const { safeMode } = options
    const replace = [...(safeMode === undefined ? config.get(KernelSettings.replace) : []), ...(options.replace ?? [])]
    const leftOut = new Map(options.leftOut?.map(({ name, why }) => [name, why]))
    for (const plugin of options.plugins) if (!disabled.includes(plugin.name)) plugin.load?.().catch(() => {})
    const lock = await acquireLock(home.root, clock, { waitMs: options.waitForLockMs ?? 0, room, startTime })
    undo.push(() => lock.release())
    if (lock.weakness !== undefined)
      warn(`the home cannot be locked (${lock.weakness}): run no other daemon for it, in another container or machine`)
    await options.locked?.()
    for (const judge of ports.judges ?? []) await judge(starting('judges'))
    undo.push(async () => keeper?.close())
    await keeper?.start()
    const store = await openStore({
      path: home.database,
      now: () => clock.now(),
      engine,
      room: keeper?.catalog ?? room,
      checkOwner: () => lock.check(),
      ...(options.disk ? { disk: options.disk } : {}),
    })
    undo.push(() => store.close())
    store.know('kernel', LEFT)
    store.share(inheritedBy(options.plugins))
    store.migrate('kernel', RecordStore.migrations)
    const db = store.db
    const scope = new OwnedScope('kernel', clock)
    undo.push(async () => errors.push(...(await scope.release(RELEASE_MS))))
    const hooks = kernelHooks(report, clock)
    const sources = hooks.collect.for(Collected.secrets.registry) as Registry<SecretSource>
    const redactors = hooks.collect.for(Redactors.registry) as Registry<Redactor>
    if (Redactors.entry) redactors.expect(Redactors.entry)
    redact.attend({ redactors, sources })
    const records = new RecordStore(db, clock, hooks, scope)
    const { Transport } = await http
    const transport = new Transport({ clock, ids, hooks, scope, redact, report, db, disk, checkReplies, inherited })
    undo.push(() => transport.end())
    runLoops(hooks, scope, { clock, ids, report })
    const collect: PluginKernel['collect'] = registry => collected(hooks, registry)
    const { pid } = lock
    const about = { options, startedAt: clock.now(), pid, host: () => host, transport, faults, redact, collect, store }
    const view = hostView(about)
    const blame = (owner: string, hook: string, error: unknown) => report({ owner, hook, error })
    const kernelServices = [
      { provides: HostToken, service: view },
      { provides: DropIns, view: (_: unknown, { name }: Consumer) => dropInsFor(host, name, store), service: {} },
      { provides: tokens.Requests, service: transport.inject.bind(transport) },
      { provides: tokens.Sockets, service: transport.listenAs.bind(transport) },
      { provides: Streams, service: transport.carryBy.bind(transport) },
      { provides: Listeners, service: transport.listeners },
      { provides: Servers, service: transport.follow.bind(transport) },
      { provides: tokens.Callers, service: { dismiss: transport.dismiss.bind(transport) } },
      { provides: tokens.DiskSpace, service: disk },
      { provides: tokens.Faults, service: blame },
      { provides: tokens.Settings, service: config },
      { provides: tokens.SettingValues, service: config },
    ]
    const host: Host = new Host({
      clock,
      hooks,
      report,
      kernelServices,
      scope,
      hold: (owners, over) => store.hold(owners, over),
      disabled,
      leftOut,
      ...(safeMode === undefined ? {} : { safeMode }),
      replace,
      critical: options.critical ?? [],
      formerNames: options.formerNames ?? {},
      migrate: slot => migrateTables(store, slot),
      adopt: ({ name, surface: { settings = [] } }, scope) => {
        config.adopt(name, settings)
        if (isDropIn(name) && settings.length > 0) scope.defer('settings', () => config.disown(name))
      },
      consumer: (name, scope) => ({ name, scope, actor: pluginActor(name), log: log.of(name) }),
      kernelFor: ({ name, version }, needs, { tables: { stream, inherits }, ...tapper }) => ({
        name,
        version,
        needs: needs as never,
        home,
        env,
        log: log.of(name),
        redact,
        scope: tapper.scope,
        clock,
        ids,
        actor: pluginActor(name),
        db: db.bind({ name, tables: stream, inherits: inherits.flatMap(({ prefixes }) => prefixes) }),
        records,
        hooks: hookFactory(name, report, clock, tapper.scope.hooks),
        config: { get: entry => config.get(entry), onChange: (entry, fn) => config.of(entry).tap(tapper, fn) },
        collect,
      }),
    })
    const begin = () => host.startWaiting()
    keeper?.onHealed(() => void store.settled().then(begin, () => {}))
    undo.push(async () => errors.push(...(await host.releaseAll())))
    const wanted = replace.filter(name => !disabled.includes(name) && !leftOut.has(name))
    const found = wanted.length > 0 ? await options.replacements?.(wanted, { home, db, clock, ids, version }) : []
    await host.boot([...options.plugins, ...(found ?? [])])
    if (sources.size > 0 && !redactors.isUsed())
      warn('no plugin redacts secrets: they appear in logs, events and errors')
    if (disk.writable) await host.startWaiting()

    const socketPath = checkSocketPath(config.get(KernelSettings.socket) || home.socket)
    undo.push(() => Promise.all([transport.close('socket', 0), transport.close('tcp', 0)]))
    const doors = options.listen ?? []
    if (doors.includes('tcp') && !hooks.open.isUsed()) warn('TCP is not served: no plugin opens a TCP listener')
    const shut = await hooks.open.ask()
    if (shut) throw shut
    if (doors.length > 0) {
      const found = tellWhere({ home, host: view, clock, log: log.of(), room, scope })
      await found.catch(error => blame('kernel', 'daemon.json', error))
    }
    // Last, because a starting command line waits for the socket.
    if (doors.includes('socket')) {
      if (!inherited?.socket) undo.push(async () => lock.isOwner() && rm(socketPath, { force: true }))
      await transport.listenSocket(socketPath)
    }

    const order = options.quiesceOrder ?? ['http', 'socket']
    let closing: Promise<readonly Error[]> | undefined
    const shutDown = async () => {
      redact.keep()
      await host.quiesce(order, SHUTDOWN_MS)
      await rollback()
      return errors
    }
    return {
      host: Object.assign(view, {
        load: host.load.bind(host),
        unload: host.unload.bind(host),
        reload: host.reload.bind(host),
        report,
      }),
      home,
      inject: request => transport.inject(request),
      setting: entry => config.get(entry),
      redact,
      close: () => {
        closing ??= shutDown()
        return closing
      },
      failed: store.failed,
    }
  } catch (error) {
    await rollback()
    throw error instanceof Fault || !(error instanceof Error) ? error : Object.assign(error, { undone: errors })
  }
}
