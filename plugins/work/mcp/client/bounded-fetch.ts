import { boundedEvents, type StreamOver } from './event-stream.js'
import { MOST_BYTES } from './process-transport.js'

const EVENT_STREAM = 'text/event-stream'

/** A `fetch` with additional headers and bounded replies: a body as a whole, an event stream by {@link boundedEvents}. */
export const boundedFetch =
  (headers: Readonly<Record<string, string>>, over: StreamOver = () => {}): typeof fetch =>
  async (input, init) => {
    const all = new Headers(init?.headers)
    for (const [name, value] of Object.entries(headers)) all.set(name, value)
    const reply = await fetch(input, { ...init, headers: all })
    if (!reply.body) return reply
    const isStream = reply.headers.get('content-type')?.trim().toLowerCase().startsWith(EVENT_STREAM) ?? false
    const body = isStream ? boundedEvents(reply.body, over) : reply.body.pipeThrough(boundedBody())
    const { status, statusText } = reply
    return new Response(body, { status, statusText, headers: reply.headers })
  }

function boundedBody(): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0
  return new TransformStream({
    transform(chunk, controller) {
      bytes += chunk.length
      if (bytes > MOST_BYTES) return controller.error(new Error(`it sent more than ${MOST_BYTES} bytes`))
      controller.enqueue(chunk)
    },
  })
}
