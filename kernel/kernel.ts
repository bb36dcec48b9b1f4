import { rm } from 'node:fs/promises'
import os from 'node:os'
import { bindKernel } from './bind-kernel.js'
import { guardCatalog } from './catalog-guard.js'
import { type Clock, systemClock } from './clock.js'
import { KernelSettings } from './config/index.js'
import { LiveConfig } from './config/live.js'
import { DiskGuard, type FreeBytes } from './disk-guard.js'
import { Fault } from './errors.js'
import { EventLog, eventLimits } from './events/index.js'
import { checkSocketPath, discovery, prepareHome } from './home.js'
import type { Report } from './hooks/index.js'
import { Host } from './host/host.js'
import { PluginFailed, PluginLoaded, PluginUnloaded } from './host/plugin-events.js'
import { quiesceAll } from './host/quiesce.js'
import type { HostView } from './host/view.js'
import type { InjectReply, InjectRequest } from './http/generation.js'
import { type Ids, systemIds } from './ids.js'
import { acquireLock } from './lock.js'
import type { LogLine } from './log.js'
import type { Plugin } from './plugin.js'
import type { Home, KernelStart } from './plugin-kernel.js'
import { homeIdentity, processMigrations, processTable } from './processes.js'
import { ReconcileLoop } from './reconcile/loop.js'
import { RecordStore } from './records/store.js'
import type { Door } from './route.js'
import { createSpawner } from './spawn.js'
import { type Disk, openStore, proveEngine } from './store/index.js'
import { textFile } from './store/json-file.js'
import type { Setting } from './surface.js'
import { version } from './version.js'

export interface KernelOptions {
  readonly home: string
  readonly plugins: readonly Plugin[]
  /** Names without which the boot stops. */
  readonly critical?: readonly string[]
  /** Names of plugins that may take the place of those which they replace, beside those of `plugins.replace`. */
  readonly replace?: readonly string[]
  /**
   * Finds the plugins that `plugins.replace` names, in the store as well. Called only when it names any that may run; those
   * found boot with the others, and what they replace is not applied unless they fail. Must not throw.
   */
  readonly replacements?: (names: readonly string[], start: KernelStart) => Promise<readonly Plugin[]>
  /** Plugins that do not run this time, and why, for people. */
  readonly leftOut?: readonly { readonly name: string; readonly why: string }[]
  /** Phases of a shutdown, in order; `http` and `socket` are the kernel's own. Phases not named here come last. */
  readonly quiesceOrder?: readonly string[]
  /** Doors to open; default none, `inject` alone. */
  readonly listen?: readonly Exclude<Door, 'inject'>[]
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly log?: (line: LogLine) => void
  readonly clock?: Clock
  readonly ids?: Ids
  /**
   * Starts a home that has data but no catalog with a new one, putting what is left of the old one aside; refused otherwise
   * (`catalog_missing`). With a catalog that is there it is refused as well (`catalog_present`).
   */
  readonly newCatalog?: boolean
  /** Milliseconds that a starting kernel waits for another one of this home to end. */
  readonly waitForLockMs?: number
  /** How free space is found; default: the system is asked. */
  readonly freeBytes?: FreeBytes
  /** File calls of the database; tests delay them and let them fail. */
  readonly disk?: Disk
  /** Checks replies against their schemas: tests and development. */
  readonly checkReplies?: boolean
}

/** A running kernel. */
export interface Kernel {
  readonly host: HostView & Pick<Host, 'load' | 'unload' | 'reload' | 'report'>
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
  const http = import('./http/transport.js')
  // Whoever awaits them hears of a failure.
  for (const early of [engine, http]) early.catch(() => {})
  try {
    const home = await prepareHome(options.home)
    const surfaces = options.plugins.flatMap(plugin => plugin.surface.settings ?? [])
    const config = await LiveConfig.read(
      { file: textFile(home.config), path: home.config, clock, log: (level, msg) => say(level, msg) },
      [...Object.values(KernelSettings), ...surfaces] as Setting[],
    )
    undo.push(() => config.close())
    const disabled = config.get(KernelSettings.disabled)
    const replace = [...config.get(KernelSettings.replace), ...(options.replace ?? [])]
    const leftOut = new Map(options.leftOut?.map(({ name, why }) => [name, why]))
    for (const plugin of options.plugins) if (!disabled.includes(plugin.name)) plugin.load?.().catch(() => {})
    const write = (line: LogLine) => {
      if (LEVELS.indexOf(line.level) >= LEVELS.indexOf(config.get(KernelSettings.logLevel))) options.log?.(line)
    }
    const say = (lineLevel: LogLine['level'], msg: string) => write({ level: lineLevel, time: clock.now(), msg })
    const disk = new DiskGuard(home, clock, say, options.freeBytes)
    const room = disk.roomFor('other')
    const lock = await acquireLock(home.root, clock, { waitMs: options.waitForLockMs ?? 0, room })
    undo.push(() => lock.release())
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
    store.migrate('kernel', [...processMigrations, ...EventLog.migrations, ...RecordStore.migrations])
    const db = store.db
    const spawner = createSpawner({
      homeId: await homeIdentity(db, home.root, () => ids.hex(16)),
      table: processTable(db),
      clock,
      durable: () => db.durable(),
    })
    const left = await spawner.reap()
    if (left.ended.length > 0) say('warn', `ended ${left.ended.length} processes that an earlier daemon left`)
    undo.push(async () => {
      await spawner.stopAll()
      // What left its group is found by its mark; nothing that was started here outlives the daemon.
      await spawner.reap()
    })

    let host: Host | undefined
    const report: Report = fault => host?.report(fault)
    const events = new EventLog(db, clock, ids, report, { dir: home.path('events'), room }, eventLimits(config))
    undo.push(() => events.close())
    const records = new RecordStore(db, clock, events, report)
    const reconcile = new ReconcileLoop(records, clock, ids, report)
    records.follower = reconcile
    const { Transport } = await http
    const transport = new Transport({
      routes: () => host?.registries.routes.collect().map(({ entry }) => entry) ?? [],
      clock,
      ids,
      // Reads are ahead of a full disk only by work that nobody was told is done.
      durable: reading =>
        db.durable().catch(error => {
          if (!reading || error.code !== 'disk_full') throw error
        }),
      full: () => disk.refusal(),
      failed: (owner, where, error) => report({ owner, hook: where, error }),
      checkReplies: options.checkReplies ?? false,
      maxStreams: () => config.get(KernelSettings.maxStreams),
      warn: text => say('warn', text),
    })
    undo.push(() => transport.end())
    const startedAt = clock.now()
    const hostView: HostView = {
      version,
      startedAt,
      pid: spawner.self,
      userHome: options.env?.HOME ?? os.homedir(),
      plugins: () => host?.slots.view() ?? [],
      listeners: () => transport.listeners(),
      streams: () => transport.streams.counts(),
      settings: () => host?.registries.settings.collect() ?? [],
      commands: () => host?.registries.commands.collect() ?? [],
      faults: () => host?.faults() ?? [],
      unknownPlugins: () => host?.slots.unknown() ?? [],
      store: () => store.status(),
      checkpoint: () => store.checkpoint(),
      document: async () => {
        const { buildDocument } = await import('./http/openapi.js')
        return buildDocument(host?.registries.routes.collect().map(({ entry }) => entry.route) ?? [], version)
      },
      config: () => config.state(),
    }
    const parts = {
      home,
      env: options.env ?? {},
      write,
      clock,
      ids,
      db,
      disk,
      room,
      records,
      events,
      reconcile,
      report,
      spawner,
      request: transport.inject.bind(transport),
    }
    host = new Host({
      clock,
      ids,
      store,
      records,
      reconcile,
      transport,
      disabled,
      leftOut,
      replace,
      critical: options.critical ?? [],
      kernelFor: (plugin, needs, tapper) => {
        config.adopt(plugin.name, plugin.surface.settings ?? [])
        return bindKernel({ ...parts, config, host: hostView, running: host as Host }, plugin, needs, tapper)
      },
      log: (lineLevel, msg, fields) => write({ level: lineLevel, time: clock.now(), msg, ...fields }),
      changed: (name, state) => {
        const type =
          state.status === 'active' ? PluginLoaded : state.status === 'failed' ? PluginFailed : PluginUnloaded
        const payload = { name, status: state.status, ...(state.status === 'failed' ? { error: state.error } : {}) }
        void db.tx(t => events.emit(t, type, payload, { subject: name })).catch(() => {})
      },
    })
    const running = host
    disk.onHealed(
      () =>
        void store.settled().then(
          () => running.startWaiting(),
          () => {},
        ),
    )
    undo.push(async () => errors.push(...(await running.releaseAll())))
    const wanted = replace.filter(name => !disabled.includes(name) && !leftOut.has(name))
    const found = wanted.length > 0 ? await options.replacements?.(wanted, { home, db, clock, ids, version }) : []
    await host.boot([...options.plugins, ...(found ?? [])])
    if (disk.writable) await host.startWaiting()
    host.startServices()
    events.start()

    const doors = options.listen ?? []
    const socketPath = checkSocketPath(config.get(KernelSettings.socket) || home.socket)
    undo.push(() => Promise.all([transport.close('socket', 0), transport.close('tcp', 0)]))
    if (doors.includes('tcp'))
      await transport.listenTcp(config.get(KernelSettings.host), config.get(KernelSettings.port))
    if (doors.length > 0) {
      undo.push(() => rm(home.discovery, { force: true }))
      const write = () =>
        textFile(home.discovery, { room }).write(discovery(transport.listeners(), spawner.self, startedAt))
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
      await quiesceAll(running, transport, order, clock, SHUTDOWN_MS)
      await rollback()
      return errors
    }
    return {
      host: Object.assign(hostView, {
        load: running.load.bind(running),
        unload: running.unload.bind(running),
        reload: running.reload.bind(running),
        report: running.report,
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
