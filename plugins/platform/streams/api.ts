import type { Writable } from 'node:stream'
import type { EncodedFrame, Frame } from '../../../kernel/plugin.js'
import { StreamErrors } from './errors.js'

/** Maximum characters of one frame's data: the largest record of a journal plus its envelope. */
const FRAME_LIMIT = 32 * 1024 * 1024

/** Why a stream has ended: because of its source, its owner, the daemon or its reader. */
export type Ending =
  | 'done'
  | 'failed'
  | 'replaced'
  | 'shutdown'
  | 'dismissed'
  | 'slow'
  | 'spoke'
  | 'spoke_binary'
  | 'gone'

/** The frames of a stream. */
export interface Source<F> extends AsyncIterable<F> {
  /**
   * Sends frames as they come, once the disk has what they show: for streams with thousands of readers, where a promise for each
   * frame weighs more than the frame. Resolves when `next` is to be called again: after a frame for which `send` returned false, and
   * whenever there is more to do than to send.
   */
  pushTo?(send: (frame: F) => boolean): Promise<void>
}

/** The transport of frames to one reader. */
export interface Wire<F> {
  /** The underlying stream: while it is full, the source waits. */
  readonly into: Writable
  /** Calls `over` when the reader disconnects, or does something that ends the stream. */
  watch(over: (how: Ending) => void): unknown
  send(frame: F): unknown
  /** Called every 15 s: sends a keep-alive, or returns why the stream has ended. */
  beat(): Ending | undefined
  /** Sends the reason of the end, and closes. */
  end(how: Ending): unknown
}

/** A frame in wire format. JSON text contains no line breaks; those in the id and the name are replaced. */
export function encodeFrame({ id, event, data }: Frame): EncodedFrame {
  const line = (name: string, value: string) => `${name}: ${value.replace(/[\r\n\0]/g, ' ')}\n`
  const head = (id === undefined ? '' : line('id', id)) + (event === undefined ? '' : line('event', event))
  return Buffer.from(`${head}data: ${frameText(data)}\n\n`)
}

/** The data of a frame as JSON. Throws `frame_too_large`. */
export function frameText(data: unknown): string {
  const text = JSON.stringify(data) ?? 'null'
  if (text.length > FRAME_LIMIT) throw StreamErrors.frame_too_large()
  return text
}
