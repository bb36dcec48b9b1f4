/** `svc`: the kernel for those who embed it. */
export { systemClock, VirtualClock } from './clock.js'
export type { InjectReply, InjectRequest } from './http/generation.js'
export { seededIds, systemIds } from './ids.js'
export { createKernel, type Kernel, type KernelOptions, type LogLine } from './kernel.js'
export { LockHeld } from './lock.js'
export * from './plugin.js'
export { version } from './version.js'
