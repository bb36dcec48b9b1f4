import type { Clock, Scope } from '../contract/basics.js'
import type { Report, Tapper } from '../contract/hook.js'
import type { Consumer, Plugin } from '../contract/plugin.js'
import type { PluginKernel } from '../contract/plugin-kernel.js'
import type { KernelHooks } from '../hooks/kernel-hooks.js'
import type { OwnedScope } from '../scope.js'
import type { Hold } from './held-writes.js'
import type { Providing } from './services.js'
import type { Slot, SlotOptions } from './slots.js'
import type { PluginTables } from './tables.js'

/** A plugin at the hooks: what it taps goes with its scope. */
export type OwnedTapper = Tapper & { readonly scope: OwnedScope }

export interface HostOptions extends SlotOptions {
  readonly clock: Clock
  /** @internal */
  readonly hooks: KernelHooks
  readonly report: Report
  /** Services of the kernel itself, which are there before any plugin is. */
  readonly given: readonly (Providing & { readonly service: unknown })[]
  readonly scope: Scope
  readonly hold: Hold
  /** Plugins without which the boot stops. */
  readonly critical: readonly string[]
  /** Applies the migrations of a plugin. Throws when they cannot be. */
  readonly migrate: (slot: Slot) => PluginTables
  /** Takes the settings of a plugin that starts; they go with its scope. Throws when their values are not valid. */
  readonly adopt: (plugin: Plugin, scope: OwnedScope) => void
  /** Who requires a service, as the service sees it. */
  readonly consumer: (name: string, scope: Scope) => Consumer
  /** Makes what a plugin is handed. */
  readonly kernelFor: (
    plugin: Plugin,
    needs: Record<string, unknown>,
    tapper: OwnedTapper & { readonly tables: PluginTables },
  ) => PluginKernel
}
