import type { ConfigState } from '../config/live.js'
import type { StoreStatus } from '../store/index.js'
import type { Command, Setting } from '../surface.js'

/** State of a plugin; `absent` ones are not known to the host at all. */
export type PluginState =
  | { readonly status: 'waiting'; readonly missing: readonly string[] }
  | { readonly status: 'active' }
  | { readonly status: 'failed'; readonly error: string }
  | { readonly status: 'disabled' }

export interface PluginInfo {
  readonly name: string
  readonly version: string
  readonly state: PluginState
  readonly requires: readonly string[]
  readonly provides?: string
  /** Labels of what its scope holds. */
  readonly holds: readonly string[]
}

/** Where a listener can be reached. */
export type ListenerInfo =
  | { readonly door: 'tcp'; readonly host: string; readonly port: number }
  | { readonly door: 'socket'; readonly path: string }

/** A service that ended unexpectedly, a tap or a release that failed: attributed to its plugin. */
export interface AttributedFault {
  readonly at: number
  readonly owner: string
  readonly where: string
  readonly error: string
}

/** What plugins may know of the host they run in. */
export interface HostView {
  readonly version: string
  /** Epoch milliseconds. */
  readonly startedAt: number
  readonly pid: number
  readonly userHome: string
  plugins(): PluginInfo[]
  listeners(): ListenerInfo[]
  settings(): { readonly owner: string; readonly entry: Setting }[]
  commands(): { readonly owner: string; readonly entry: Command }[]
  faults(): readonly AttributedFault[]
  store(): StoreStatus
  /** Moves the log of the store into its database; resolves when that is on the disk. */
  checkpoint(): Promise<void>
  /** The OpenAPI document of everything that is routed now. */
  document(): Promise<unknown>
  /** What of the configuration file is not in force, and why. */
  config(): ConfigState
}
