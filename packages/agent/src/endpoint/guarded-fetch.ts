import type { Settings } from '../settings.js'
import { commonForm, streamOfWhole } from './dialects.js'
import { EndpointFailure } from './failures.js'

/** Bytes of one answer; a longer stream is cut. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024
/** Bytes of a whole answer sent instead of a stream, and of an error body. */
const MAX_WHOLE = 4 * 1024 * 1024
const MAX_REFUSAL = 64 * 1024
const STREAM = { 'content-type': 'text/event-stream' }

/** Progress of one call's answer. */
export interface ReadProgress {
  bytes: number
}

/**
 * `fetch` for one call of the endpoint. Answers that are no stream, that are too long or that stop without data become readable
 * failures. Redirects are refused because the key would follow them.
 */
export function guardedFetch(
  baseUrl: string,
  { silenceMs, stallMs }: Pick<Settings, 'silenceMs' | 'stallMs'>,
  progress: ReadProgress,
): typeof fetch {
  return async (input, init) => {
    const silence = new AbortController()
    const say = () => {
      const isBegun = progress.bytes > 0
      const bound = isBegun
        ? `in the middle of its answer for ${stallMs / 1000} s (SVC_AGENT_STALL_MS)`
        : `for ${silenceMs / 1000} s (SVC_AGENT_SILENCE_MS)`
      const text = `the endpoint ${baseUrl} has sent no data ${bound}`
      silence.abort(new EndpointFailure(isBegun ? 'stalled' : 'silent', text))
    }
    const signal = init?.signal ? AbortSignal.any([init.signal, silence.signal]) : silence.signal
    // Node forgets a joined signal that nobody holds: each wait listens to it.
    const within = <T>(ms: number, data: Promise<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        let hasCome = false
        // Data that came while this process stood still is read before the time counts.
        const timer = setTimeout(() => setImmediate(() => hasCome || say()), ms).unref()
        const stop = () => reject(signal.reason)
        if (signal.aborted) stop()
        signal.addEventListener('abort', stop, { once: true })
        const over = () => {
          hasCome = true
          clearTimeout(timer)
          signal.removeEventListener('abort', stop)
        }
        data.finally(over).then(resolve, reject)
      })
    const reply = await within(silenceMs, fetch(input, { ...init, signal, redirect: 'error' }))
    if (!reply.ok || reply.body === null) return within(silenceMs, bounded(reply, MAX_REFUSAL))
    const type = reply.headers.get('content-type') ?? ''
    if (!/^text\/event-stream\b/i.test(type)) {
      const stream =
        /^application\/json\b/i.test(type) &&
        streamOfWhole(await (await within(silenceMs, bounded(reply, MAX_WHOLE))).text())
      if (stream) {
        progress.bytes += stream.length
        return new Response(new Blob([stream]).stream().pipeThrough(commonForm()), { headers: STREAM })
      }
      if (!reply.bodyUsed) await reply.body.cancel()
      const what = type === '' ? 'without a content type' : `with ${type.split(';')[0]}`
      throw new EndpointFailure(
        'half_protocol',
        `the endpoint ${baseUrl} replied ${what} instead of a stream; does its URL end with /v1?`,
      )
    }
    const reader = reply.body.getReader()
    const counted = new ReadableStream<Uint8Array>(
      {
        // The time runs only while data is asked for: a reader that takes its time is no silence of the endpoint.
        async pull(controller) {
          const { done, value } = await within(progress.bytes > 0 ? stallMs : silenceMs, reader.read())
          if (done) return controller.close()
          progress.bytes += value.byteLength
          if (progress.bytes > MAX_ANSWER_BYTES) {
            const text = `the endpoint ${baseUrl} sent more than ${MAX_ANSWER_BYTES / 1024 / 1024} MB in one answer; it was cut`
            const error = new EndpointFailure('too_much', text)
            await reader.cancel(error)
            throw error
          }
          controller.enqueue(value)
        },
        cancel: reason => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    )
    return new Response(counted.pipeThrough(commonForm()), { status: reply.status, headers: reply.headers })
  }
}

/** The first `max` bytes of a body. */
async function bounded(reply: Response, max: number): Promise<Response> {
  const parts: Uint8Array[] = []
  let bytes = 0
  if (reply.body) {
    for await (const part of reply.body) {
      parts.push(part)
      bytes += part.byteLength
      if (bytes > max) break
    }
  }
  return new Response(Buffer.concat(parts), { status: reply.status, headers: reply.headers })
}
