import type { Readable, Writable } from 'node:stream'
import { type AnyMessage, RequestError, type Stream } from '@agentclientprotocol/sdk'
import { parseJson } from '../../../../kernel/kit/text.js'
import { messageOf, turn } from '../../../../kernel/plugin.js'
import { readLines } from '../../../platform/processes/api.js'

const MAX_LINE_BYTES = 16 * 1024 * 1024
/** Consecutive lines without a message after which the agent is assumed to speak another protocol. */
const MAX_JUNK = 1000
/** Agent requests that are handled at the same time. */
const MAX_INCOMING = 64
/** Unread bytes written to the agent after which it is assumed to read nothing. */
const MAX_UNREAD = 16 * 1024 * 1024

/** Callbacks for messages that bypass the SDK. */
export interface LinkHandlers {
  /** Owner of the process, for people; the cost of its messages is attributed to it. */
  readonly owner: string
  /** Receives the parameters of each `session/update` in order. The next message is read after this returns. */
  update(params: unknown): void
  /** Waits while earlier updates are still being processed. */
  room(): Promise<void>
  /** Any data arrived. */
  activity(): void
  /** A line that is not a message. */
  junk(line: string): void
  /** A request was refused because too many are in progress. */
  refused(why: string): void
}

/**
 * The lines of an agent process as a stream for the SDK. The SDK's own reader answers junk with an error message, does not apply
 * backpressure, and refuses updates that lack a member. Lines are therefore read here: junk is counted and skipped, updates bypass
 * the SDK, and the pipe applies the backpressure. The stream ends with an error that gives the reason.
 */
export function linkOf(
  stdout: Readable,
  stdin: Writable,
  handlers: LinkHandlers,
): Stream & { failure(): Error | undefined } {
  const pendingIds = new Set<unknown>()
  const answering = new Set<unknown>()
  let failure: Error | undefined

  const send = (message: AnyMessage) =>
    new Promise<void>((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, error => (error ? reject(error) : resolve()))
    })

  /** Returns the message for the SDK; undefined for a message that is handled here. */
  const take = (message: Message): AnyMessage | undefined => {
    if (!('method' in message)) {
      pendingIds.delete(message.id)
    } else if ('id' in message) {
      if (answering.has(message.id) || answering.size >= MAX_INCOMING) {
        if (stdin.writableLength > MAX_UNREAD) throw new Error('it does not read its input')
        const refusal = new RequestError(-32005, 'too many requests at once').toErrorResponse()
        send({ jsonrpc: '2.0', id: message.id, error: refusal } as AnyMessage).catch(() => {})
        handlers.refused(`${MAX_INCOMING} requests are already being answered`)
        return undefined
      }
      answering.add(message.id)
    } else if (message.method === 'session/update') {
      handlers.update(message.params)
      return undefined
    }
    return message as AnyMessage
  }

  let isCancelled = false
  const readable = new ReadableStream<AnyMessage>({
    // The connection cancels when it cannot write: later output and the end of the agent are then not protocol failures.
    cancel() {
      isCancelled = true
    },
    async start(controller) {
      const pass = (line: string): boolean => {
        const message = parse(line)
        if (!message || !isExpected(message, pendingIds)) {
          if (line !== '') handlers.junk(line)
          return false
        }
        const next = take(message)
        if (next && !isCancelled) controller.enqueue(next)
        return true
      }
      try {
        await readLines(stdout, {
          owner: handlers.owner,
          lineBytes: MAX_LINE_BYTES,
          junk: MAX_JUNK,
          unfinished: true,
          take: pass,
          activity: () => handlers.activity(),
          async room() {
            await handlers.room()
            // A pipe that is never empty would otherwise starve the event loop.
            if (answering.size >= MAX_INCOMING) await turn()
          },
        })
        if (!isCancelled) controller.close()
      } catch (error) {
        failure = new Error(messageOf(error), { cause: error })
        try {
          controller.error(failure)
        } catch {
          // The reader has already been cancelled.
        }
      }
    },
  })

  const writable = new WritableStream<AnyMessage>({
    async write(message) {
      if ('method' in message && 'id' in message) pendingIds.add(message.id)
      // The slot is freed before the response is sent: the agent may send its next request as soon as it has the response.
      if (!('method' in message) && 'id' in message) answering.delete(message.id)
      await send(message)
    },
  })
  return { readable, writable, failure: () => failure }
}

type Message = { readonly id?: unknown; readonly method?: unknown; readonly params?: unknown }

function parse(line: string): Message | undefined {
  // Every message is an object; this skips log lines that happen to be other JSON.
  if (line[0] !== '{') return undefined
  try {
    return parseJson(line) as Message
  } catch {
    return undefined
  }
}

/** A request, a notification, or the response to a pending request. */
function isExpected(message: Message, pendingIds: ReadonlySet<unknown>): boolean {
  if ((message as { jsonrpc?: unknown }).jsonrpc !== '2.0') return false
  if ('method' in message) {
    const { id } = message
    return typeof message.method === 'string' && (id === undefined || typeof id === 'string' || Number.isFinite(id))
  }
  return pendingIds.has(message.id)
}
