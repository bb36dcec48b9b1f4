import type { ServerResponse } from 'node:http'
import type { BoundRoute } from '../contract/bound.js'
import type { Fault } from '../contract/errors.js'
import type { Identified } from '../contract/kernel-hooks.js'
import { kernelToken } from '../contract/kernel-tokens.js'
import type { Actor } from '../contract/record.js'
import type { Door, SocketReply, StreamReply } from '../contract/route.js'
import type { Upgrade } from './listeners.js'

/** A request for a route whose handler may stream. */
export interface Streaming {
  readonly bound: BoundRoute
  readonly arrival: Identified & { readonly upgrade?: Upgrade | undefined }
  readonly response: ServerResponse
}

/** The owner, door and caller of a stream. */
export interface StreamOf {
  readonly owner: string
  readonly door: Door
  readonly actor: Actor
}

/**
 * Opens the stream that a handler returned; resolves once it is open. A rejection is sent as a refusal.
 * @param told reports a failure of the source and returns the fault that the reader may see
 * @param over called when the stream has ended
 */
export type Carry = (
  reply: StreamReply | SocketReply,
  toFault: (error: unknown) => Fault,
  over: () => void,
) => Promise<void>

/** Sends the streams of handlers. */
export interface Carrier {
  /**
   * Reserves a place for a stream before its handler runs; undefined for a request that cannot get a stream. Throws when all places
   * are taken.
   */
  enter(request: Streaming): Carry | undefined
  /** Ends the matching streams. */
  end(how: 'replaced' | 'shutdown' | 'dismissed', isOne: (stream: StreamOf) => boolean): void
  /** Open streams by owner. */
  counts(): Readonly<Record<string, number>>
}

/** Registers the carrier of all streams, until the returned function is called. */
export const Streams = kernelToken<(carrier: Carrier) => () => void>('kernel.streams@1')
