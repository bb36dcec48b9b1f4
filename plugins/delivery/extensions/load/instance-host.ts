import type { DropInsApi } from '../../../../kernel/platform.js'
import type { PluginState } from '../../../../kernel/plugin.js'
import type { ExtensionRuntime } from '../../subprocess-host/api.js'
import type { InstalledExtension } from '../api.js'
import type { Claims } from '../folders/claims.js'
import type { BootCode } from './boot-code.js'
import type { CodeCache } from './code.js'
import type { Checker } from './error-location.js'
import type { Families } from './families.js'
import type { Instance } from './instance.js'
import type { KeptCode } from './kept-code.js'
import type { LogRing } from './log-ring.js'

/** Shared dependencies of all instances. */
export interface InstanceHost extends Checker {
  readonly daemonVersion: string
  readonly dropIns: DropInsApi
  readonly code: CodeCache
  readonly kept: KeptCode
  /** A name that was never used before. */
  readonly unique: () => string
  readonly families: Families
  readonly claims: Claims
  /** Creates the process of an extension with `[subprocess]`. */
  readonly runtime: (extension: InstalledExtension, logs: LogRing) => ExtensionRuntime
  /** Code of the extension that the boot started or tried to start. */
  readonly bootCodeOf: (whose: { readonly name: string; readonly key: string }) => BootCode | undefined
  /** State of the plugin of that name, also as a replacement; undefined if there is none. */
  readonly stateOf: (name: string) => PluginState | undefined
  /** Called when the status, health or problem of an instance changed. */
  readonly changed: (instance: Instance) => void
  /** Announces a change that no request caused. */
  readonly tell: () => void
}
