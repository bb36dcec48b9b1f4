import type { SettingSource, SettingsApi } from './config.js'
import type { Fault } from './errors.js'
import type { Actor } from './record.js'
import type { DiskRoom } from './storage.js'
import { type Token, token } from './token.js'

const ids = new Set<string>()

/** What the kernel provides by itself, to those who require it: `requires` shows who may use what. */
export function given<T>(id: string): Token<T> {
  ids.add(id)
  return token<T>(id)
}

/** A request to the daemon's own routes on behalf of somebody: they see `as` as their actor. Throws while it stops. */
export const Requests = given<(request: InjectRequest, as: Actor) => Promise<InjectReply>>('kernel.requests@1')
/**
 * Ends what callers have under way: their streams, and requests that have no answer yet, which are refused with this fault. For
 * the plugin that takes a right to call away.
 */
export const Callers = given<{ dismiss(isOne: (caller: Actor) => boolean, why: Fault): void }>('kernel.callers@1')
/**
 * Listens on a further Unix socket, 0600, where every request is one actor's. The returned function closes it, with all that is
 * open on it; what is left at the end of the daemon is closed then.
 */
export const Sockets = given<(path: string, as: Actor) => Promise<() => Promise<void>>>('kernel.sockets@1')
/** Whether there is room to write; what works in the background asks it before it begins. */
export const DiskSpace = given<DiskRoom>('kernel.disk-space@1')
/** Attributes a fault to somebody that this plugin works for, an extension say; doctor shows it. */
export const Faults = given<(owner: string, where: string, error: unknown) => void>('kernel.faults@1')

/** What says what is configured, for the plugin that made it. */
export const SettingValues = given<SettingSource>('kernel.setting-values@1')
/** Changes of settings, for taps on a surface. */
export const Settings = given<SettingsApi>('kernel.settings@1')

/** Whether the kernel provides the service of this id: it is there before any plugin is. */
export const isOfKernel = (id: string): boolean => ids.has(id)

export interface InjectRequest {
  readonly method: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON; bytes as they are, with the content type that the headers name. */
  readonly body?: unknown
}

export interface InjectReply {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  /** As text; `bytes` for what is none. */
  readonly body: string
  readonly bytes: Uint8Array
}
