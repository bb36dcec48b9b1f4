/** `svc/plugin`: everything that an author of a plugin needs. */

export { systemClock, turn, within } from './clock.js'
export * from './contract/basics.js'
export * from './contract/bound.js'
export type * from './contract/command.js'
export type * from './contract/config.js'
export * from './contract/errors.js'
export type * from './contract/hook.js'
export type * from './contract/kernel-hooks.js'
export type { InjectReply, InjectRequest } from './contract/kernel-tokens.js'
export {
  Callers,
  DiskSpace,
  Faults,
  Requests,
  Settings,
  SettingValues,
  Sockets,
} from './contract/kernel-tokens.js'
export * from './contract/kind.js'
export * from './contract/plugin.js'
export type * from './contract/plugin-kernel.js'
export * from './contract/record.js'
export type * from './contract/redact.js'
export * from './contract/route.js'
export type * from './contract/storage.js'
export * from './contract/surface.js'
export * from './contract/token.js'
export { isActor } from './hooks/is-actor.js'
export { DropIns, type DropInsApi } from './host/drop-ins.js'
export type { AttributedFault } from './host/fault-log.js'
export type { PluginInfo } from './host/slots.js'
export { Host, type HostView } from './host-view.js'
export { type Carrier, type Carry, type Streaming, type StreamOf, Streams } from './http/carrier.js'
export { HttpErrors } from './http/errors.js'
export { isOneOf } from './http/guards.js'
export {
  type Address,
  type Doorkeeper,
  type ListenerInfo,
  Listeners,
  type Serve,
  Servers,
} from './http/listeners.js'
export { durableToRead, errorBody, typeOf } from './http/reply.js'
export { operatorAt } from './http/request.js'
export { refuseHandshake } from './http/serve-route.js'
export { backoff } from './kit/backoff.js'
export { canonicalJson } from './kit/canonical.js'
export { allowance } from './kit/flood.js'
export { issueText } from './kit/issue-text.js'
export * from './kit/rate.js'
export {
  FileErrors,
  openRegularFile,
  openRegularFileSync,
  readBounded,
  readRegularFile,
  readRegularFileSync,
} from './kit/read-file.js'
export { onBehalfOf } from './on-behalf.js'
export { RecordErrors } from './records/errors.js'
export { KernelSettings } from './settings.js'
// For plugins that keep files of their own: durable writes, and what these do on a full disk.
export { type Disk, readIfThere, readInto, replaceFile, systemDisk } from './store/disk.js'
export { StoreError } from './store/error.js'
export { Note, noteBytes, readNote } from './store/note.js'
export { Progress } from './store/progress.js'
export { diskFull, isFull, noReserve, Patience, spending, syncing, writeAll } from './store/room.js'
