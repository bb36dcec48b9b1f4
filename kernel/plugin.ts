/** `svc/plugin`: everything that an author of a plugin needs. */

export { journalsBelow } from './catalog-guard.js'
export { systemClock } from './clock.js'
export { KernelSettings } from './config/index.js'
export * from './contract/actor.js'
export type { Awaitable } from './contract/awaitable.js'
export { type BoundReconciler, Collected } from './contract/bound.js'
export { type Clock, iso, type Timer } from './contract/clock.js'
export type { ColorName, CommandClient, CommandContext, CommandOutput, CommandTerminal } from './contract/command.js'
export * from './contract/config.js'
export type { Db, Inherited, Migration, SqlValue, Tx } from './contract/db.js'
export type { DiskRoom, Room } from './contract/disk.js'
export {
  defineErrors,
  type ErrorEntry,
  Fault,
  type FaultMore,
  faultOf,
  KernelErrors,
  messageOf,
} from './contract/errors.js'
export { type EventType, event } from './contract/event.js'
export type {
  Contribution,
  Gate,
  Guard,
  Hook,
  HookFactory,
  HookOptions,
  Notify,
  Pipeline,
  Report,
} from './contract/hook.js'
export {
  type AttributedFault,
  type DropIns,
  type HostView,
  type ListenerInfo,
  type PluginInfo,
  type PluginState,
  reasonOf,
  type TcpState,
} from './contract/host-view.js'
export type { Ids } from './contract/ids.js'
export type { InjectReply, InjectRequest } from './contract/inject.js'
export type { Change, Exchange, Identified, Incoming, KernelTaps, Leaving, Written } from './contract/kernel-hooks.js'
export { KIND_NAME, type Kind, kind, type RecordScope } from './contract/kind.js'
export {
  type Consumer,
  definePlugin,
  isDropIn,
  type Plugin,
  type PluginHead,
  type Provider,
  perConsumer,
  type ServiceClass,
} from './contract/plugin.js'
export type {
  Home,
  KernelStart,
  Log,
  PluginKernel,
} from './contract/plugin-kernel.js'
export { type Batch, type Reconciler, type Watch, watch } from './contract/reconcile.js'
export type {
  PartyOf,
  PutResult,
  RecordChange,
  RecordDelete,
  RecordFilter,
  RecordHead,
  Records,
  RecordWrite,
  Snapshot,
  SnapshotResult,
  SpecOf,
  StoredRecord,
} from './contract/record.js'
export * from './contract/route.js'
export type { Scope } from './contract/scope.js'
export * from './contract/surface.js'
export type { TextFile } from './contract/text-file.js'
export * from './contract/token.js'
export { encodeFrame } from './http/streams.js'
export { everyPid, inspectProcess, inspectProcesses, type ProcessInfo, statFields } from './inspect.js'
export { issueText } from './issue-text.js'
export { backoff } from './kit/backoff.js'
export { canonicalJson } from './kit/canonical.js'
export { allowance } from './kit/flood.js'
export { type Rate, TokenBucket } from './kit/rate.js'
export {
  FileErrors,
  openRegularFile,
  openRegularFileSync,
  readBounded,
  readRegularFile,
  readRegularFileSync,
} from './kit/read-file.js'
export { recordToWire } from './kit/resource-kind.js'
export { onBehalfOf } from './on-behalf.js'
export { within } from './scope.js'
// For plugins that keep files of their own: durable writes, and what these do on a full disk.
export { type Disk, readIfThere, readInto, replaceFile, systemDisk } from './store/disk.js'
export { StoreError } from './store/error.js'
export { Note, noteBytes, readNote } from './store/note.js'
export { Progress } from './store/progress.js'
export { diskFull, isFull, noReserve, Patience, spending, syncing, writeAll } from './store/room.js'
export { mapInTurns, turn } from './turn.js'
export type { Checked } from './verify.js'
