import { textFile } from './config/json-file.js'
import type { LiveConfig } from './config/live.js'
import { pluginActor } from './contract/actor.js'
import type { Clock } from './contract/clock.js'
import type { Db } from './contract/db.js'
import type { DiskRoom } from './contract/disk.js'
import type { Hook, Report, Tapper } from './contract/hook.js'
import type { DropIns, HostView } from './contract/host-view.js'
import type { Ids } from './contract/ids.js'
import type { Plugin } from './contract/plugin.js'
import type { Home, PluginKernel } from './contract/plugin-kernel.js'
import { hookFactory } from './hooks/index.js'
import { collected, type KernelHooks } from './hooks/kernel-hooks.js'
import type { PluginTables } from './host/tables.js'
import { type LogLine, logFor } from './log.js'
import type { RecordStore } from './records/store.js'
import type { OwnedScope } from './scope.js'

/** What a kernel is made of, as far as its plugins use it. */
export interface KernelParts {
  readonly home: Home
  readonly env: PluginKernel['env']
  readonly write: (line: LogLine) => void
  readonly clock: Clock
  readonly ids: Ids
  readonly db: Db
  readonly disk: DiskRoom
  readonly records: RecordStore
  readonly report: Report
  readonly config: LiveConfig
  readonly host: HostView
  readonly request: PluginKernel['request']
  readonly hooks: KernelHooks
  readonly dropIns: (owner: string) => DropIns
}

/** The kernel as one plugin is handed it: its name on everything, what it acquires on its scope. */
export function bindKernel(
  parts: KernelParts,
  plugin: Plugin,
  needs: Record<string, unknown>,
  tapper: Tapper & { scope: OwnedScope; tables: PluginTables },
): PluginKernel {
  const { home, env, clock, ids, disk, records, host, report, config } = parts
  const { name, version } = plugin
  const { scope, tables } = tapper
  const settings = config.bind(scope, (hook, error) => report({ owner: name, hook, error }))
  return {
    name,
    version,
    needs: needs as never,
    home,
    env,
    log: logFor(name, clock, parts.write),
    scope,
    clock,
    ids,
    actor: pluginActor(name),
    db: parts.db.bind({ name, tables: tables.stream, inherits: tables.inherits.flatMap(({ prefixes }) => prefixes) }),
    disk,
    records,
    host,
    request: parts.request,
    dropIns: parts.dropIns(name),
    hooks: hookFactory(name, report, clock),
    report: (owner, hook, error) => report({ owner, hook, error }),
    file: (...path) => textFile(home.path(...path), { room: disk.room }),
    config: settings,
    collect: token => collected(parts.hooks, token),
    tap: <F>(hook: Hook<F>, fn: F) => hook.tap(tapper, fn),
  }
}
