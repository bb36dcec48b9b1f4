import type { SettingSource } from './contract/config.js'
import type { Report, Tapper } from './contract/hook.js'
import type { Plugin } from './contract/plugin.js'
import type { PluginKernel } from './contract/plugin-kernel.js'
import { pluginActor } from './contract/record.js'
import type { Db } from './contract/storage.js'
import { hookFactory } from './hooks/index.js'
import { collected, type KernelHooks } from './hooks/kernel-hooks.js'
import type { PluginTables } from './host/tables.js'
import { type LogLine, logFor } from './log.js'
import type { RecordStore } from './records/store.js'
import type { Redaction } from './redaction.js'
import type { OwnedScope } from './scope.js'

/** What a kernel is made of, as far as its plugins use it. */
export interface KernelParts extends Pick<PluginKernel, 'home' | 'env' | 'clock' | 'ids'> {
  readonly write: (line: LogLine) => void
  readonly redact: Redaction
  readonly db: Db
  readonly records: RecordStore
  readonly report: Report
  readonly config: SettingSource
  readonly hooks: KernelHooks
}

/** The kernel as one plugin is handed it: its name on everything, what it acquires on its scope. */
export function bindKernel(
  parts: KernelParts,
  plugin: Plugin,
  needs: Record<string, unknown>,
  tapper: Tapper & { scope: OwnedScope; tables: PluginTables },
): PluginKernel {
  const { home, env, clock, ids, records, report, config } = parts
  const { name, version } = plugin
  const { scope, tables } = tapper
  return {
    name,
    version,
    needs: needs as never,
    home,
    env,
    log: logFor(name, clock, parts.write),
    redact: parts.redact,
    scope,
    clock,
    ids,
    actor: pluginActor(name),
    db: parts.db.bind({ name, tables: tables.stream, inherits: tables.inherits.flatMap(({ prefixes }) => prefixes) }),
    records,
    hooks: hookFactory(name, report, clock),
    config: { get: entry => config.get(entry), onChange: (entry, fn) => config.of(entry).tap(tapper, fn) },
    collect: token => collected(parts.hooks, token),
  }
}
