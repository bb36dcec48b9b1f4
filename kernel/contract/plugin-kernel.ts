import type { Actor } from './actor.js'
import type { Clock } from './clock.js'
import type { Config } from './config.js'
import type { Db } from './db.js'
import type { DiskRoom } from './disk.js'
import type { Contribution, Hook, HookFactory } from './hook.js'
import type { DropIns, HostView } from './host-view.js'
import type { Ids } from './ids.js'
import type { InjectReply, InjectRequest } from './inject.js'
import type { Records } from './record.js'
import type { Scope } from './scope.js'
import type { TextFile } from './text-file.js'
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
export interface Log {
  debug(text: string, fields?: Readonly<Record<string, unknown>>): void
  info(text: string, fields?: Readonly<Record<string, unknown>>): void
  warn(text: string, fields?: Readonly<Record<string, unknown>>): void
  error(text: string, fields?: Readonly<Record<string, unknown>>): void
}

/** What a plugin is handed: everything it may do, bound to its name and its scope. */
export interface PluginKernel<N extends Needs = Needs> {
  readonly name: string
  readonly version: string
  readonly needs: Resolved<N>
  readonly home: Home
  /** The environment that the embedder gave; never `process.env`. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly scope: Scope
  readonly clock: Clock
  readonly ids: Ids
  /** The plugin acting on its own. */
  readonly actor: Actor
  /** The database, bound to tables `<plugin>_…`; reads are free. */
  readonly db: Db
  /** Whether there is room to write; what works in the background asks it before it begins. */
  readonly disk: DiskRoom
  readonly records: Records
  readonly host: HostView
  readonly dropIns: DropIns
  readonly hooks: HookFactory
  /** A request to the daemon's own routes on behalf of somebody: they see `as` as their actor. Throws while it stops. */
  request(request: InjectRequest, as: Actor): Promise<InjectReply>
  /** Attributes a fault to somebody this plugin works for, an extension say; doctor shows it. */
  report(owner: string, where: string, error: unknown): void
  /** A small text file below the home, written durably and atomically. */
  file(...path: string[]): TextFile
  /** The configuration: values of settings, where they come from, what changes would come to, writing them. */
  readonly config: Config
  /** Everything contributed now to a registry. */
  collect<T>(registry: RegistryToken<T>): Contribution<T>[]
  /** Taps a hook; the tap goes with the scope. */
  tap<F>(hook: Hook<F>, fn: NoInfer<F>): void
}

/** What there is of a kernel before it has plugins; `version` is that of the program. */
export type KernelStart = Pick<PluginKernel, 'home' | 'db' | 'clock' | 'ids' | 'version'>
