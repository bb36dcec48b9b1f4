/** `svc/plugin`: everything that an author of a plugin needs. */
import type { Awaitable } from './awaitable.js'
import type { PluginKernel } from './plugin-kernel.js'
import type { Surface } from './surface.js'
import type { Needs, Token } from './token.js'

export * from './actor.js'
export type { Awaitable } from './awaitable.js'
export { type Clock, iso, type Timer } from './clock.js'
export type { ColorName, CommandClient, CommandContext, CommandOutput, CommandTerminal } from './command.js'
export { KernelSettings } from './config/index.js'
export type { DiskRoom } from './disk-guard.js'
export { defineErrors, type ErrorEntry, Fault, type FaultMore, faultOf, KernelErrors, messageOf } from './errors.js'
export {
  type DayCount,
  type DurableCursor,
  type EmitOptions,
  type EventFilter,
  type Events,
  type EventType,
  event,
  type GapEvent,
  isGap,
  type StoredEvent,
} from './events/index.js'
export type { Gate, Guard, Hook, Notify, Pipeline } from './hooks/index.js'
export { PluginLoaded, PluginUnloaded } from './host/plugin-events.js'
export {
  type AttributedFault,
  type DropIns,
  type HostView,
  type ListenerInfo,
  type PluginInfo,
  type PluginState,
  reasonOf,
  type TcpState,
} from './host/view.js'
export type { InjectReply, InjectRequest } from './http/generation.js'
export { encodeFrame } from './http/streams.js'
export type { Ids } from './ids.js'
export { issueText } from './issue-text.js'
export type { Journal, JournalRecord } from './journal/index.js'
export {
  FileErrors,
  openRegularFile,
  openRegularFileSync,
  readBounded,
  readRegularFile,
  readRegularFileSync,
} from './kit/read-file.js'
export { onBehalfOf } from './on-behalf.js'
export type { Contributed, Home, HookFactory, HookOptions, KernelStart, Log, PluginKernel } from './plugin-kernel.js'
export { type Rate, TokenBucket } from './rate.js'
export * from './reconcile/types.js'
export {
  canonicalJson,
  KIND_NAME,
  type Kind,
  kind,
  type PutResult,
  type RecordChange,
  type RecordDelete,
  type RecordFilter,
  type RecordScope,
  type Records,
  type RecordWrite,
  recordToWire,
  type Snapshot,
  type SnapshotResult,
  type StoredRecord,
} from './records/index.js'
export * from './route.js'
export { type Scope, within } from './scope.js'
export type { ProcessHandle, SpawnRequest } from './spawn.js'
export type { Db, Inherited, Migration, SqlValue, Tx } from './store/index.js'
export * from './surface.js'
export * from './token.js'
export { mapInTurns, turn } from './turn.js'

/** A unit with a name that registers things and may provide one service. Hand-written objects are as good as defined ones. */
export interface Plugin {
  /** In-tree `things`; drop-in `vendor.things`. */
  readonly name: string
  readonly version: string
  readonly requires: Needs
  readonly provides?: Token<unknown>
  /** Name of the plugin whose place this one takes once the operator lists it in `plugins.replace`; it has its tables. */
  readonly replaces?: string
  /** Plain data, readable without running anything. */
  // biome-ignore lint/suspicious/noExplicitAny: the erasing line of plugins
  readonly surface: Surface<any>
  /** Begins to load the code of `apply`; a boot calls it for all plugins before it applies the first. */
  load?(): Promise<unknown>
  /** Acquires what the plugin needs and returns its service; everything acquired hangs on `kernel.scope`. */
  // biome-ignore lint/suspicious/noExplicitAny: the erasing line of plugins
  apply(kernel: PluginKernel<any>): Awaitable<unknown>
}

/** The head of a plugin: all but its surface. */
export interface PluginHead<N extends Needs, S extends T, T> {
  readonly name: string
  readonly version: string
  readonly requires?: N
  /** The token under which others find the service. */
  readonly provides?: Token<T>
  readonly replaces?: string
  /** Loads the service's class; the only thing of a plugin that is not loaded with its surface. */
  readonly service: () => Promise<ServiceClass<N, S>>
}

export type ServiceClass<N extends Needs, S> = new (kernel: PluginKernel<N>) => S

/** Defines a plugin; it has no power that a hand-written object lacks. A service with `start()` has it awaited. */
export function definePlugin<const N extends Needs, S extends T, T = unknown>(
  head: PluginHead<N, S, T>,
): { surface(surface: Surface<S>): Plugin } {
  return {
    surface: surface => ({
      name: head.name,
      version: head.version,
      requires: head.requires ?? {},
      ...(head.provides ? { provides: head.provides as Token<unknown> } : {}),
      ...(head.replaces === undefined ? {} : { replaces: head.replaces }),
      surface,
      load: head.service,
      async apply(kernel: PluginKernel<N>) {
        const Service = await head.service()
        const self = new Service(kernel)
        kernel.register(surface, self)
        await (self as { start?: () => Awaitable<void> }).start?.()
        return self
      },
    }),
  }
}
