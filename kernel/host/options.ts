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

/** A plugin as the owner of taps, which end with its scope. */
export type OwnedTapper = Tapper & { readonly scope: OwnedScope }

export interface HostOptions extends SlotOptions {
  readonly clock: Clock
  /** @internal */
  readonly hooks: KernelHooks
  readonly report: Report
  /** Services of the kernel itself, available before any plugin starts. */
  readonly kernelServices: readonly (Providing & { readonly service: unknown })[]
  readonly scope: Scope
  readonly hold: Hold
  /** Plugins without which the boot fails. */
  readonly critical: readonly string[]
  /** Applies the migrations of a plugin. Throws when one cannot be applied. */
  readonly migrate: (slot: Slot) => PluginTables
  /** Registers the settings of a starting plugin until its scope ends. Throws when their values are not valid. */
  readonly adopt: (plugin: Plugin, scope: OwnedScope) => void
  /** Makes the consumer object by which a service knows a plugin that requires it. */
  readonly consumer: (name: string, scope: Scope) => Consumer
  /** Makes the kernel object of a plugin. */
  readonly kernelFor: (
    plugin: Plugin,
    needs: Record<string, unknown>,
    tapper: OwnedTapper & { readonly tables: PluginTables },
  ) => PluginKernel
}
