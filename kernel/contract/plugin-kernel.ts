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

/** What every plugin is handed, bound to its name and its scope; what only some do is a service that they require. */
export interface PluginKernel<N extends Needs = Needs> {
  readonly name: string
  readonly version: string
  readonly needs: Resolved<N>
  readonly home: Home
  /** The environment that the embedder gave; never `process.env`. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Its lines, and the faults of routes, have no registered value; what else leaves goes through `redact` first. */
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
  /** The configuration: values of settings, where they come from, what changes would come to, writing them. */
  readonly config: Config
  /** Everything contributed now to a registry. */
  collect<T>(registry: RegistryToken<T>): Contribution<T>[]
}

/** The kernel of a plugin with these needs: `export type K = KernelOf<typeof needs>`. */
export type KernelOf<N extends Needs> = PluginKernel<N>

/** What there is of a kernel before it has plugins; `version` is that of the program. */
export type KernelStart = Pick<PluginKernel, 'home' | 'db' | 'clock' | 'ids' | 'version'>
