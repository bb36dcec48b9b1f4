/** `svc`: the kernel for programs that embed it. */
export { delay, sleepOn } from './clock.js'
export { conflictOf, lackOf } from './host/claims.js'
export type { InheritedSockets } from './http/listeners.js'
export { idsOf, systemIds } from './ids.js'
export { createKernel, type Kernel } from './kernel.js'
export type { KernelOptions } from './kernel-options.js'
export type { LogLine, LogPort, LogSink } from './log.js'
export { version } from './version.js'
