import type { SettingSource, SettingsApi } from './config.js'
import type { Fault } from './errors.js'
import type { Actor } from './record.js'
import type { DiskRoom } from './storage.js'
import { type Token, token } from './token.js'

const ids = new Set<string>()

/** Makes the token of a service of the kernel itself. Plugins get such a service only by naming it in `requires`. */
export function kernelToken<T>(id: string): Token<T> {
  ids.add(id)
  return token<T>(id)
}

/** Sends a request to the daemon's own routes with `as` as its actor. Throws during the shutdown. */
export const Requests = kernelToken<(request: InjectRequest, as: Actor) => Promise<InjectReply>>('kernel.requests@1')
/**
 * Ends the streams of matching callers, and refuses their unanswered requests with this fault: for a plugin that revokes access.
 */
export const Callers = kernelToken<{ dismiss(isOne: (caller: Actor) => boolean, why: Fault): void }>('kernel.callers@1')
/**
 * Listens on a further Unix socket, 0600, where every request has the same actor. The returned function closes it and its
 * connections, as the shutdown does.
 */
export const Sockets = kernelToken<(path: string, as: Actor) => Promise<() => Promise<void>>>('kernel.sockets@1')
/** Whether there is space to write; background work checks it before it begins. */
export const DiskSpace = kernelToken<DiskRoom>('kernel.disk-space@1')
/** Reports a fault of another owner that this plugin works for, such as an extension; doctor shows it. */
export const Faults = kernelToken<(owner: string, where: string, error: unknown) => void>('kernel.faults@1')

/** The source of all settings, for the plugin that made it. */
export const SettingValues = kernelToken<SettingSource>('kernel.setting-values@1')
/** Changes of settings, for taps on a surface. */
export const Settings = kernelToken<SettingsApi>('kernel.settings@1')

/** Whether the kernel itself provides the service of this id, which is then available before any plugin starts. */
export const isOfKernel = (id: string): boolean => ids.has(id)

export interface InjectRequest {
  readonly method: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. Bytes are sent unchanged, with the content type from the headers. */
  readonly body?: unknown
  /** False for a caller that itself waits until all data of the reply is on the disk. */
  readonly waits?: false
}

export interface InjectReply {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  /** The body as text; `bytes` for binary replies. */
  readonly body: string
  readonly bytes: Uint8Array
}
