import type { Readable, Writable } from 'node:stream'
import { type AnyMessage, RequestError, type Stream } from '@agentclientprotocol/sdk'
import { parseJson } from '../../../../kernel/kit/text.js'
import { messageOf, turn } from '../../../../kernel/plugin.js'
import { readLines } from '../../../platform/processes/api.js'

const MAX_LINE_BYTES = 16 * 1024 * 1024
/** Lines in a row that are no message, after which the other side is taken to speak something else. */
const MAX_JUNK = 1000
/** Requests of the agent that are answered at the same time. */
const MAX_INCOMING = 64
/** Bytes written to the agent that it has not read; beyond them it is taken to read nothing. */
const MAX_UNREAD = 16 * 1024 * 1024

/** What comes over a link beside what the SDK handles. */
export interface LinkHandlers {
  /** Whose process it is, for people: what its messages cost is attributed to it. */
  readonly owner: string
  /** The parameters of a `session/update`, in the order they came; nothing after them is looked at before this returns. */
  update(params: unknown): void
  /** Waits while what came so far is not digested. */
  room(): Promise<void>
  /** Anything at all came. */
  activity(): void
  /** A line that is no message. */
  junk(line: string): void
  /** A request was refused, for too many are being answered. */
  refused(why: string): void
}

/**
 * The lines of an agent process as a stream for the SDK. The SDK's own reader answers junk with an error message, reads
 * on however far its reader lags, and refuses updates that lack a member; so the lines are read here: junk is counted
 * and skipped, updates go past the SDK, and the pipe is the backpressure. It ends with an error that says why.
 */
export function linkOf(
  stdout: Readable,
  stdin: Writable,
  handlers: LinkHandlers,
): Stream & { failure(): Error | undefined } {
  const asked = new Set<unknown>()
  const answering = new Set<unknown>()
  let failure: Error | undefined

  const send = (message: AnyMessage) =>
    new Promise<void>((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, error => (error ? reject(error) : resolve()))
    })

  /** The message for the SDK; undefined for what is dealt with. */
  const take = (message: Message): AnyMessage | undefined => {
    if (!('method' in message)) {
      asked.delete(message.id)
    } else if ('id' in message) {
      if (answering.has(message.id) || answering.size >= MAX_INCOMING) {
        if (stdin.writableLength > MAX_UNREAD) throw new Error('it does not read what it is sent')
        const refusal = new RequestError(-32005, 'too many requests at once').toErrorResponse()
        send({ jsonrpc: '2.0', id: message.id, error: refusal } as AnyMessage).catch(() => {})
        handlers.refused(`${MAX_INCOMING} requests are being answered already`)
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
    // As the connection does when it cannot write: what the agent still says, and its end, are no failures of the protocol.
    cancel() {
      isCancelled = true
    },
    async start(controller) {
      const pass = (line: string): boolean => {
        const message = parse(line)
        if (!message || !isExpected(message, asked)) {
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
            // A pipe that is never empty is read again and again before anything else has its turn.
            if (answering.size >= MAX_INCOMING) await turn()
          },
        })
        if (!isCancelled) controller.close()
      } catch (error) {
        failure = new Error(messageOf(error), { cause: error })
        try {
          controller.error(failure)
        } catch {
          // The reader is gone already.
        }
      }
    },
  })

  const writable = new WritableStream<AnyMessage>({
    async write(message) {
      if ('method' in message && 'id' in message) asked.add(message.id)
      // Before it is sent: whoever has his answer may ask again.
      if (!('method' in message) && 'id' in message) answering.delete(message.id)
      await send(message)
    },
  })
  return { readable, writable, failure: () => failure }
}

type Message = { readonly id?: unknown; readonly method?: unknown; readonly params?: unknown }

function parse(line: string): Message | undefined {
  // Every message is an object; a log line that happens to be JSON is not.
  if (line[0] !== '{') return undefined
  try {
    return parseJson(line) as Message
  } catch {
    return undefined
  }
}

/** A request, a notification, or the answer to something that was asked. */
function isExpected(message: Message, asked: ReadonlySet<unknown>): boolean {
  if ((message as { jsonrpc?: unknown }).jsonrpc !== '2.0') return false
  if ('method' in message) {
    const { id } = message
    return typeof message.method === 'string' && (id === undefined || typeof id === 'string' || Number.isFinite(id))
  }
  return asked.has(message.id)
}
