import type { Readable, Writable } from 'node:stream'
import { Poster, type Reply } from './poster.js'

/** Bytes of one message. */
const MOST_BYTES = 4 * 1024 * 1024

/** An MCP client on standard input and output, and the daemon that it is to reach. */
export interface Relay {
  readonly socket: string
  readonly input: Readable
  readonly output: Writable
  /** What the connection is opened with. */
  readonly open: Readonly<Record<string, unknown>>
}

/**
 * Hands messages of an MCP client to the daemon, and its answers back, until the client ends. It knows nothing of the protocol
 * but that a message is a line. Rejects when the daemon does not take the connection.
 */
export async function relay({ socket, input, output, open }: Relay): Promise<void> {
  const daemon = new Poster(socket)
  const opened = await daemon.post('/api/mcp/connections', JSON.stringify(open))
  if (opened.status !== 201) throw new Error(whyOf(opened))
  const { connection_id: id } = JSON.parse(opened.text)
  const under = new Set<Promise<void>>()
  const take = async (line: string) => {
    const { message, problem } = parsed(line)
    if (problem) return say(output, { jsonrpc: '2.0', id: null, error: problem })
    try {
      // As it came: to write a list of tools anew takes as long as to make it.
      const reply = await daemon.post('/api/mcp/messages', `{"connection_id":${JSON.stringify(id)},"message":${line}}`)
      if (reply.status === 200) output.write(`${reply.text}\n`)
      else if (reply.status !== 204) throw new Error(whyOf(reply))
    } catch (error) {
      // Whoever asked waits for an answer, also when there is no daemon any more.
      const { id: asked, method } = Object(message) as { id?: unknown; method?: unknown }
      if (asked === undefined || method === undefined) return
      say(output, { jsonrpc: '2.0', id: asked, error: { code: -32000, message: (error as Error).message } })
    }
  }
  for await (const line of lines(input)) {
    const work = take(line).finally(() => under.delete(work))
    under.add(work)
  }
  await daemon.post('/api/mcp/connections/close', JSON.stringify({ connection_id: id })).catch(() => {})
}

function parsed(line: string | undefined) {
  try {
    const message: unknown = JSON.parse(line ?? '')
    if (typeof message === 'object' && message !== null && !Array.isArray(message)) return { message }
  } catch {
    // Said below, like a value that is no object.
  }
  return { problem: { code: -32700, message: `one JSON object a line is expected, of at most ${MOST_BYTES} bytes` } }
}

const say = (output: Writable, message: unknown): void => {
  output.write(`${JSON.stringify(message)}\n`)
}

/** Lines of a stream; one that is too long is an empty one, and what is left of it is skipped. */
async function* lines(input: Readable): AsyncGenerator<string> {
  let parts: Buffer[] = []
  let bytes = 0
  for await (const chunk of input as AsyncIterable<Buffer>) {
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      parts.push(chunk.subarray(start, end))
      bytes += end - start
      const line = bytes > MOST_BYTES ? '{' : Buffer.concat(parts).toString().trim()
      parts = []
      bytes = 0
      start = end + 1
      if (line !== '') yield line
    }
    const rest = chunk.subarray(start)
    bytes += rest.length
    if (bytes > MOST_BYTES) parts = []
    else parts.push(rest)
  }
}

/** What the daemon says of a request that it refused. */
function whyOf({ status, text }: Reply): string {
  try {
    const { error, code, next } = JSON.parse(text)
    return [`${error}${code ? ` (${code})` : ''}`, next].filter(Boolean).join('; ')
  } catch {
    return `the daemon answered ${status}`
  }
}
