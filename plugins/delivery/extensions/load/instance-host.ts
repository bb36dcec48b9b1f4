import type { DropInsApi } from '../../../../kernel/platform.js'
import type { PluginState } from '../../../../kernel/plugin.js'
import type { InstalledExtension } from '../api.js'
import type { Claims } from '../folders/claims.js'
import type { BegunCode } from './begun.js'
import type { CodeCache } from './code.js'
import type { Families } from './families.js'
import type { Instance } from './instance.js'
import type { KeptCode } from './kept.js'
import type { LogRing } from './log-ring.js'
import type { Checker } from './places.js'
import type { ExtensionRuntime } from './runtime.js'

/** What instances share. */
export interface InstanceHost extends Checker {
  readonly daemonVersion: string
  readonly dropIns: DropInsApi
  readonly code: CodeCache
  readonly kept: KeptCode
  /** A name that was never used before. */
  readonly unique: () => string
  readonly families: Families
  readonly claims: Claims
  /** The process of an extension with `[subprocess]`. */
  readonly runtime: (extension: InstalledExtension, logs: LogRing) => ExtensionRuntime
  /** What there is of its code that the boot started, or tried to. */
  readonly begun: (whose: { readonly name: string; readonly key: string }) => BegunCode | undefined
  /** How the plugin of that name is, wherever it has its place; undefined when there is none. */
  readonly stateOf: (name: string) => PluginState | undefined
  /** Its status, health or problem changed. */
  readonly changed: (instance: Instance) => void
  /** That happened by itself: others are to be told now. */
  readonly tell: () => void
}
