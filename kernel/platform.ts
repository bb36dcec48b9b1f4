/**
 * `svc/platform`: for plugins that do a part of the kernel's work: serve connections, keep files of the home, follow registrations,
 * load plugins. Open to every extension. Its names may change in a minor version. At most 40 values, each in this entry alone.
 */

export { type Bound, type BoundOwned, type BoundRoute, Collected } from './contract/bound.js'
export type { Configuring, SettingSource } from './contract/config.js'
export { Callers, SettingValues, Sockets } from './contract/kernel-tokens.js'
export { isDropIn, reasonOf } from './contract/plugin.js'
export type { Ports, Starting } from './contract/ports.js'
export { operatorAt } from './contract/record.js'
export { Redactors } from './contract/redact.js'
export { isSchema, operationId } from './contract/route.js'
export type { DiskKeeper, MigrationStream, StoreStatus } from './contract/storage.js'
export { DropIns, type DropInsApi } from './host/drop-ins.js'
export type { AttributedFault } from './host/fault-log.js'
export type { PluginInfo } from './host/slots.js'
export { type Carrier, type Carry, type Streaming, type StreamOf, Streams } from './http/carrier.js'
export { HttpErrors } from './http/errors.js'
export {
  type Address,
  type Doorkeeper,
  type ListenerInfo,
  Listeners,
  type ListenersApi,
  type Serve,
  type ServerFollower,
  Servers,
} from './http/listeners.js'
export { durableToRead, errorBody, refuseHandshake } from './http/reply.js'
export { acquireLock } from './lock/index.js'
export { KernelSettings } from './settings.js'
export { type Disk, type OpenMode, readIfThere, readInto, replaceFile, systemDisk } from './store/disk.js'
export { StoreError } from './store/error.js'
export { openStore } from './store/index.js'
export { Note, noteBytes, readNote } from './store/note.js'
export { Progress } from './store/progress.js'
export { diskFull, isFull, noReserve, Patience, spending, syncing, writeAll } from './store/room.js'
