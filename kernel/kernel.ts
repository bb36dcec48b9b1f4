import { rm } from 'node:fs/promises'
import os from 'node:os'
import { bindKernel } from './bind-kernel.js'
import { guardCatalog } from './catalog-guard.js'
import { systemClock } from './clock.js'
import { KernelSettings } from './config/index.js'
import { textFile } from './config/json-file.js'
import { LiveConfig } from './config/live.js'
import { pluginActor } from './contract/actor.js'
import { Collected } from './contract/bound.js'
import { Fault } from './contract/errors.js'
import type { Report } from './contract/hook.js'
import type { HostView } from './contract/host-view.js'
import type { InjectReply, InjectRequest } from './contract/inject.js'
import { isDropIn } from './contract/plugin.js'
import type { Home } from './contract/plugin-kernel.js'
import type { Setting } from './contract/surface.js'
import { checkSocketPath, discovery, prepareHome } from './home.js'
import { collected, kernelHooks } from './hooks/kernel-hooks.js'
import { dropInsFor } from './host/drop-ins.js'
import { FaultLog } from './host/fault-log.js'
import { Host } from './host/host.js'
import { runServices } from './host/service-loop.js'
import { inheritedBy, migrateTables } from './host/tables.js'
import { systemIds } from './ids.js'
import type { KernelOptions } from './kernel-options.js'
import { acquireLock } from './lock.js'
import { type LogLine, logFor } from './log.js'
import { RecordStore } from './records/store.js'
import { OwnedScope } from './scope.js'
import { DiskGuard } from './store/disk-guard.js'
import { openStore, proveEngine } from './store/index.js'
import { version } from './version.js'

/** A running kernel. */
export interface Kernel {
  readonly host: HostView & Pick<Host, 'load' | 'unload' | 'reload'> & { readonly report: Report }
  readonly home: Home
  /** A request as the Unix socket's actor, without a socket. */
  inject(request: InjectRequest): Promise<InjectReply>
  /** Value of a setting, the kernel's own ones among them. */
  setting<T>(entry: Setting<T>): T
  /** Quiesces, releases, closes the store, then gives the lock back. Never rejects; what went wrong is returned. */
  close(): Promise<readonly Error[]>
  /** Resolves when the store failed: nothing is acknowledged any more and the kernel has to be closed. */
  readonly failed: Promise<Error>
}

const SHUTDOWN_MS = 10_000
const RELEASE_MS = 5000
/** Migrations of the kernel's own stream whose tables plugins inherit: a kernel without these plugins starts on such a home. */
const LEFT = {
  '001-process': 'd264b6154d881e0ae4fd58d4c278ddbc6c4fcf502da9f77d2f33a753176f5323',
  '001-event': 'a9fefd0bc86747e7cdf94bc0c83c0267580f9a722e10e37a1e04becc60321998',
  '002-outbox': '7d6e8709915ddc52b1641dc3a5c690ec8be2c3f24b66d2ca429a0a8695b89c83',
}
const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** Boots a kernel on a home directory: configuration, lock, store, plugins, listeners. A failure undoes what was done. */
export async function createKernel(options: KernelOptions): Promise<Kernel> {
  const clock = options.clock ?? systemClock()
  const ids = options.ids ?? systemIds()
  const undo: (() => Promise<unknown>)[] = []
  const errors: Error[] = []
  const rollback = async () => {
    for (const step of undo.splice(0).reverse()) {
      await step().catch(error => errors.push(error instanceof Error ? error : new Error(String(error))))
    }
  }
  // SQLite compiles in other threads while this one loads the code that comes next.
  const engine = proveEngine()
  const http = Promise.all([import('./http/transport.js'), import('./http/stages.js')])
  // Whoever awaits them hears of a failure.
  for (const early of [engine, http]) early.catch(() => {})
  try {
    const home = await prepareHome(options.home)
    const surfaces = options.plugins.flatMap(plugin => plugin.surface.settings ?? [])
    // None of them says anything before the configuration tells from which level on.
    const write = (line: LogLine) => {
      if (LEVELS.indexOf(line.level) >= LEVELS.indexOf(config.get(KernelSettings.logLevel))) options.log?.(line)
    }
    const say = (lineLevel: LogLine['level'], msg: string) => write({ level: lineLevel, time: clock.now(), msg })
    const disk = new DiskGuard(home, clock, say, options.freeBytes)
    const { room } = disk
    const file = textFile(home.config, { room })
    const config = await LiveConfig.read({ file, path: home.config, env: options.env ?? {}, clock, log: say }, [
      ...Object.values(KernelSettings),
      ...surfaces,
    ] as Setting[])
    undo.push(() => config.close())
    const disabled = config.get(KernelSettings.disabled)
    const { safeMode } = options
    const replace = [...(safeMode === undefined ? config.get(KernelSettings.replace) : []), ...(options.replace ?? [])]
    const leftOut = new Map(options.leftOut?.map(({ name, why }) => [name, why]))
    for (const plugin of options.plugins) if (!disabled.includes(plugin.name)) plugin.load?.().catch(() => {})
    const lock = await acquireLock(home.root, clock, { waitMs: options.waitForLockMs ?? 0, room })
    undo.push(() => lock.release())
    options.locked?.()
    const aside = await guardCatalog(home.root, { newCatalog: options.newCatalog ?? false, now: clock.now() })
    if (aside) say('warn', `a new catalog begins; what was left of the one before is in ${aside}`)
    undo.push(() => disk.close())
    await disk.start()
    const store = await openStore({
      path: home.database,
      now: () => clock.now(),
      engine,
      room: disk.roomFor('catalog'),
      ...(options.disk ? { disk: options.disk } : {}),
    })
    undo.push(() => store.close())
    store.know('kernel', LEFT)
    store.share(inheritedBy(options.plugins))
    store.migrate('kernel', RecordStore.migrations)
    const db = store.db
    const faults = new FaultLog(clock, write)
    const { report } = faults
    const scope = new OwnedScope('kernel', clock)
    undo.push(async () => errors.push(...(await scope.release(RELEASE_MS))))
    const hooks = kernelHooks(report, clock)
    const records = new RecordStore(db, clock, hooks, scope)
    runServices(hooks, scope, clock, ids, report)
    const [{ Transport }, { attachTransport }] = await http
    const transport = new Transport({
      routes: () => collected(hooks, Collected.routes).map(({ entry }) => entry),
      clock,
      ids,
      // Reads are ahead of a full disk only by work that nobody was told is done.
      durable: reading =>
        db.durable().catch(error => {
          if (!reading || error.code !== 'disk_full') throw error
        }),
      full: () => disk.refusal(),
      unrouted: () => collected(hooks, Collected.unrouted),
      failed: (owner, where, error) => report({ owner, hook: where, error }),
      checkReplies: options.checkReplies ?? false,
      hooks,
      maxStreams: () => config.get(KernelSettings.maxStreams),
      allowedHosts: () => config.get(KernelSettings.allowedHosts),
      authenticator: config.get(KernelSettings.authenticator),
      warn: text => say('warn', text),
      ...(options.connectionTables === undefined ? {} : { connectionTables: options.connectionTables }),
    })
    attachTransport(transport, hooks, scope)
    undo.push(() => transport.end())
    const startedAt = clock.now()
    const hostView: HostView = {
      version,
      startedAt,
      ...(safeMode === undefined ? {} : { safeMode }),
      pid: lock.pid,
      userHome: options.env?.HOME ?? os.homedir(),
      plugins: () => host.slots.view(),
      listeners: () => transport.listeners(),
      tcp: () => transport.tcpState(),
      streams: () => transport.streams.counts(),
      settings: () => collected(hooks, Collected.settings),
      commands: () => collected(hooks, Collected.commands),
      faults: () => faults.list(),
      unknownPlugins: () => host.slots.unknown(),
      store: () => store.status(),
      checkpoint: () => store.checkpoint(),
      config: () => config.values.state(),
    }
    const parts = {
      home,
      env: options.env ?? {},
      write,
      clock,
      ids,
      db,
      disk,
      records,
      report,
      request: transport.inject.bind(transport),
    }
    const host: Host = new Host({
      clock,
      hooks,
      report,
      disabled,
      leftOut,
      ...(safeMode === undefined ? {} : { safeMode }),
      replace,
      critical: options.critical ?? [],
      migrate: slot => migrateTables(store, slot),
      adopt: ({ name, surface: { settings = [] } }, scope) => {
        config.values.adopt(name, settings)
        if (isDropIn(name) && settings.length > 0) scope.defer('settings', () => config.values.disown(name))
      },
      consumer: (name, scope) => ({ name, scope, actor: pluginActor(name), log: logFor(name, clock, write) }),
      kernelFor: (plugin, needs, tapper) =>
        bindKernel({ ...parts, hooks, config, host: hostView, dropIns }, plugin, needs, tapper),
      log: (lineLevel, msg, fields) => write({ level: lineLevel, time: clock.now(), msg, ...fields }),
      changed: (name, state) => hooks.changed.call(name, state),
    })
    disk.onHealed(
      () =>
        void store.settled().then(
          () => host.startWaiting(),
          () => {},
        ),
    )
    const dropIns = (owner: string) =>
      dropInsFor(host, owner, async name => {
        store.forget(name)
        await db.durable()
      })
    undo.push(async () => errors.push(...(await host.releaseAll())))
    const wanted = replace.filter(name => !disabled.includes(name) && !leftOut.has(name))
    const found = wanted.length > 0 ? await options.replacements?.(wanted, { home, db, clock, ids, version }) : []
    await host.boot([...options.plugins, ...(found ?? [])])
    if (disk.writable) await host.startWaiting()

    const doors = options.listen ?? []
    const socketPath = checkSocketPath(config.get(KernelSettings.socket) || home.socket)
    undo.push(() => Promise.all([transport.close('socket', 0), transport.close('tcp', 0)]))
    if (doors.includes('tcp')) {
      const { host, port, enabled } = KernelSettings
      await transport.listenTcp(config.get(host), config.get(port), config.get(enabled))
    }
    if (doors.length > 0) {
      undo.push(() => rm(home.discovery, { force: true }))
      const write = () =>
        textFile(home.discovery, { room }).write(discovery(transport.listeners(), lock.pid, startedAt))
      // Without room it is written later: the socket is found without it.
      await write().catch(error => disk.whenHealed(error, write))
    }
    // Last, for that is what a starting command line waits for.
    if (doors.includes('socket')) {
      undo.push(() => rm(socketPath, { force: true }))
      await transport.listenSocket(socketPath)
    }
    if (doors.length > 0) config.watch()

    const order = options.quiesceOrder ?? ['http', 'socket']
    let closing: Promise<readonly Error[]> | undefined
    const shutDown = async () => {
      await host.quiesce(order, SHUTDOWN_MS)
      await rollback()
      return errors
    }
    return {
      host: Object.assign(hostView, {
        load: host.load.bind(host),
        unload: host.unload.bind(host),
        reload: host.reload.bind(host),
        report,
      }),
      home,
      inject: request => transport.inject(request),
      setting: entry => config.get(entry),
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
