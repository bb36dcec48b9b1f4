import type { ServerResponse } from 'node:http'
import type { BoundRoute } from '../contract/bound.js'
import type { Fault } from '../contract/errors.js'
import type { Identified } from '../contract/kernel-hooks.js'
import { given } from '../contract/kernel-tokens.js'
import type { Actor } from '../contract/record.js'
import type { Door, SocketReply, StreamReply } from '../contract/route.js'
import type { Upgrade } from './listeners.js'

/** A request for a route whose handler may stream. */
export interface Streaming {
  readonly bound: BoundRoute
  readonly arrival: Identified & { readonly upgrade?: Upgrade | undefined }
  readonly response: ServerResponse
}

/** Whose stream it is, and where it goes. */
export interface StreamOf {
  readonly owner: string
  readonly door: Door
  readonly actor: Actor
}

/**
 * Opens the stream that a handler gave, which goes on when this has resolved. A rejection is sent as a refusal.
 * @param told says that the source failed, and how a reader may see it @param over is called when the stream is over
 */
export type Carry = (
  reply: StreamReply | SocketReply,
  told: (error: unknown) => Fault,
  over: () => void,
) => Promise<void>

/** Sends what handlers stream. */
export interface Carrier {
  /** Makes a place for a stream before its handler runs; undefined where a request gets none. Throws where all are taken. */
  enter(request: Streaming): Carry | undefined
  /** Ends these streams. */
  end(how: 'replaced' | 'shutdown' | 'dismissed', isOne: (stream: StreamOf) => boolean): void
  /** Open streams by owner. */
  counts(): Readonly<Record<string, number>>
}

/** Has somebody send what handlers stream, until the returned function is called. */
export const Streams = given<(carrier: Carrier) => () => void>('kernel.streams@1')
