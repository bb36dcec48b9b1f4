import type { Writable } from 'node:stream'
import type { EncodedFrame, Frame } from '../../../kernel/plugin.js'
import { StreamErrors } from './errors.js'

/** Characters of one frame's data: room for the largest record of a journal and what is put around it. */
const FRAME_LIMIT = 32 * 1024 * 1024

/** Why a stream is over: how it is with its source, its owner, the daemon and its reader. */
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

/** How frames reach one reader. */
export interface Wire<F> {
  /** What they are written into: while it is full, the source waits. */
  readonly into: Writable
  /** Tells when the reader is gone, or does what ends the stream. */
  watch(over: (how: Ending) => void): unknown
  send(frame: F): unknown
  /** Every 15 s: something for the reader to get, or how it was found to be over. */
  beat(): Ending | undefined
  /** Says how it ended, and lets go. */
  end(how: Ending): unknown
}

/** A frame in the wire format; line breaks cannot occur in JSON text, and are taken out of the id and the name. */
export function encodeFrame({ id, event, data }: Frame): EncodedFrame {
  const line = (name: string, value: string) => `${name}: ${value.replace(/[\r\n\0]/g, ' ')}\n`
  const head = (id === undefined ? '' : line('id', id)) + (event === undefined ? '' : line('event', event))
  return Buffer.from(`${head}data: ${frameText(data)}\n\n`)
}

/** What a frame carries as JSON. Throws `frame_too_large`. */
export function frameText(data: unknown): string {
  const text = JSON.stringify(data) ?? 'null'
  if (text.length > FRAME_LIMIT) throw StreamErrors.frame_too_large()
  return text
}
