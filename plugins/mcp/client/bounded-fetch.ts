import { MOST_BYTES } from './process-transport.js'

const EVENT_STREAM = 'text/event-stream'

/** `fetch` whose replies are bounded: a body as a whole, a stream of events event by event. */
export const boundedFetch =
  (headers: Readonly<Record<string, string>>): typeof fetch =>
  async (input, init) => {
    const all = new Headers(init?.headers)
    for (const [name, value] of Object.entries(headers)) all.set(name, value)
    const reply = await fetch(input, { ...init, headers: all })
    if (!reply.body) return reply
    const isStream = reply.headers.get('content-type')?.startsWith(EVENT_STREAM) ?? false
    const { status, statusText } = reply
    return new Response(reply.body.pipeThrough(bound(isStream)), { status, statusText, headers: reply.headers })
  }

function bound(perEvent: boolean): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0
  return new TransformStream({
    transform(chunk, controller) {
      bytes += chunk.length
      if (bytes > MOST_BYTES) return controller.error(new Error(`it sent more than ${MOST_BYTES} bytes`))
      if (perEvent && hasBlankLine(chunk)) bytes = 0
      controller.enqueue(chunk)
    },
  })
}

/** An event ends with an empty line. */
const hasBlankLine = (chunk: Uint8Array) =>
  chunk.some((byte, at) => byte === 10 && (chunk[at + 1] === 10 || (chunk[at + 1] === 13 && chunk[at + 2] === 10)))
