import type { Clock, Ids, Scope } from './basics.js'
import type { Config } from './config.js'
import type { Contribution, HookFactory } from './hook.js'
import type { Actor, Records } from './record.js'
import type { Redact } from './redact.js'
import type { Db } from './storage.js'
import type { Needs, RegistryToken, Resolved } from './token.js'

/** Paths of the home directory. */
export interface Home {
  readonly root: string
  readonly database: string
  readonly socket: string
  readonly discovery: string
  readonly config: string
  readonly logs: string
  /** A path below the home; throws on `..` and absolute parts. */
  path(...parts: string[]): string
}

/** Structured log, bound to its plugin. */
export type Log = Readonly<
  Record<'debug' | 'info' | 'warn' | 'error', (text: string, fields?: Readonly<Record<string, unknown>>) => void>
>

/** The kernel for one plugin, bound to its name and scope. Rarely needed functions are services, to be named in `requires`. */
export interface PluginKernel<N extends Needs = Needs> {
  readonly name: string
  readonly version: string
  readonly needs: Resolved<N>
  readonly home: Home
  /** The environment as given by the embedder; never `process.env`. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The log redacts its lines, and so do faults of routes; other output must pass through `redact`. */
  readonly log: Log
  readonly redact: Redact
  readonly scope: Scope
  readonly clock: Clock
  readonly ids: Ids
  /** The plugin acting on its own. */
  readonly actor: Actor
  /** The database, bound to tables `<plugin>_…`; reads are free. */
  readonly db: Db
  readonly records: Records
  readonly hooks: HookFactory
  /** The values of settings, and their changes. */
  readonly config: Config
  /** All current entries of a registry. */
  collect<T>(registry: RegistryToken<T>): Contribution<T>[]
}

/** The kernel of a plugin with these needs: `export type K = KernelOf<typeof needs>`. */
export type KernelOf<N extends Needs> = PluginKernel<N>

/** The parts of the kernel that exist before plugins; `version` is that of the program. */
export type KernelStart = Pick<PluginKernel, 'home' | 'db' | 'clock' | 'ids' | 'version'>
