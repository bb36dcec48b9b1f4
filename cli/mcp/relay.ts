import type { Readable, Writable } from 'node:stream'
import { Poster, type Reply } from './poster.js'

/** Maximum bytes of one message. */
const MOST_BYTES = 4 * 1024 * 1024
const LINE_BREAK = Buffer.from('\n')

/** An MCP client on standard input and output, and the socket of its daemon. */
export interface Relay {
  readonly socket: string
  readonly input: Readable
  readonly output: Writable
  /** Body of the request that opens the connection. */
  readonly open: Readonly<Record<string, unknown>>
}

/**
 * Relays messages of an MCP client to the daemon and its replies back, until the client ends. The only known part of the protocol
 * is one message per line. Rejects when the daemon refuses the connection.
 */
export async function relay({ socket, input, output, open }: Relay): Promise<void> {
  const daemon = new Poster(socket)
  const opened = await daemon.post('/api/mcp/connections', JSON.stringify(open))
  if (opened.status !== 201) throw new Error(whyOf(opened))
  const { connection_id: id } = JSON.parse(opened.body.toString())
  const under = new Set<Promise<void>>()
  const take = async (line: string) => {
    const { message, problem } = parsed(line)
    if (problem) return say(output, { jsonrpc: '2.0', id: null, error: problem })
    try {
      // Both lines are passed on unchanged: decoding and encoding a list of tools would take as long as sending it.
      const reply = await daemon.post('/api/mcp/messages', `{"connection_id":${JSON.stringify(id)},"message":${line}}`)
      if (reply.status === 200) output.write(Buffer.concat([reply.body, LINE_BREAK]))
      else if (reply.status !== 204) throw new Error(whyOf(reply))
    } catch (error) {
      // The client expects a response to its request even without a daemon.
      const { id: requestId, method } = Object(message) as { id?: unknown; method?: unknown }
      if (requestId === undefined || method === undefined) return
      say(output, { jsonrpc: '2.0', id: requestId, error: { code: -32000, message: (error as Error).message } })
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
    // Reported below, like a value that is not an object.
  }
  return { problem: { code: -32700, message: `one JSON object per line is expected, of at most ${MOST_BYTES} bytes` } }
}

const say = (output: Writable, message: unknown): void => {
  output.write(`${JSON.stringify(message)}\n`)
}

/** Lines of a stream; an overlong line becomes an empty one, and its rest is skipped. */
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

/** The error text of a refused request. */
function whyOf({ status, body }: Reply): string {
  try {
    const { error, code, next } = JSON.parse(body.toString())
    return [`${error}${code ? ` (${code})` : ''}`, next].filter(Boolean).join('; ')
  } catch {
    return `the daemon answered ${status}`
  }
}
