import { connect, type Socket } from 'node:net'
import { clip } from '../../kernel/kit/text.js'

/**
 * Milliseconds that an idle connection is kept: shorter than in the daemon, so that the daemon never closes one under a request.
 */
const KEPT_MS = 2000
const HEAD_END = Buffer.from('\r\n\r\n')

export interface Reply {
  readonly status: number
  readonly body: Buffer
}

/**
 * Requests to the daemon over its socket. Written by hand, because loading Node's client takes longer than the rest of the start of
 * this program, and a message through it takes half as long again.
 */
export class Poster {
  readonly #idle = new Set<Socket>()

  constructor(private readonly socketPath: string) {}

  /** Posts a JSON body. Rejects without a daemon, or when the daemon closes the connection without a reply. */
  async post(path: string, body: string): Promise<Reply> {
    const [kept] = this.#idle
    const socket = kept ?? this.#connect()
    this.#idle.delete(socket)
    socket.setTimeout(0)
    socket.ref()
    const { isKept, ...reply } = await exchange(socket, path, body)
    if (isKept && !socket.destroyed) {
      socket.setTimeout(KEPT_MS)
      socket.unref()
      this.#idle.add(socket)
    } else socket.destroy()
    return reply
  }

  #connect(): Socket {
    const socket = connect(this.socketPath)
    // An error on an idle connection must not be unhandled.
    socket.on('error', () => {})
    socket.on('timeout', () => socket.destroy())
    for (const end of ['end', 'close']) socket.on(end, () => this.#idle.delete(socket))
    return socket
  }
}

interface Head {
  readonly status: number
  /** Start of the body. */
  readonly from: number
  /** Bytes of the body; undefined: all until the connection ends. */
  readonly length: number | undefined
  readonly isKept: boolean
}

/** Throws for a reply in a form that the daemon does not send. */
function headOf(bytes: Buffer): Head | undefined {
  const end = bytes.indexOf(HEAD_END)
  if (end < 0) return undefined
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n')
  const fields = new Map(
    lines.map(line => {
      const at = line.indexOf(':')
      return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()] as const
    }),
  )
  const status = Number(/^HTTP\/1\.1 (\d{3})(?: |$)/.exec(first)?.[1])
  const length = fields.get('content-length')
  if (!status || fields.has('transfer-encoding') || (length !== undefined && !/^\d{1,15}$/.test(length)))
    throw new Error(`this is not a reply of the daemon: ${clip(first, 100)}`)
  const isKept = fields.get('connection')?.toLowerCase() !== 'close'
  const none = status === 204 ? 0 : undefined
  return { status, from: end + HEAD_END.length, length: length === undefined ? none : Number(length), isKept }
}

function exchange(socket: Socket, path: string, body: string): Promise<Reply & { readonly isKept: boolean }> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    let head: Head | undefined
    const over = () => socket.off('data', take).off('error', fail).off('close', closed)
    const fail = (error: Error) => {
      over()
      socket.destroy()
      reject(error)
    }
    const done = ({ status, from, length, isKept }: Head) => {
      over()
      const end = length === undefined ? undefined : from + length
      const body = (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)).subarray(from, end)
      resolve({ status, body, isKept: isKept && end === bytes })
    }
    const closed = () => {
      if (head && head.length === undefined) done(head)
      else fail(new Error('the daemon ended the connection'))
    }
    const take = (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      try {
        head ??= headOf(chunks.length === 1 ? chunk : Buffer.concat(chunks))
      } catch (error) {
        return fail(error as Error)
      }
      if (head?.length !== undefined && bytes >= head.from + head.length) done(head)
    }
    socket.on('data', take).on('error', fail).on('close', closed)
    const length = Buffer.byteLength(body)
    const fields = ['host: localhost', 'content-type: application/json', `content-length: ${length}`]
    socket.write(`POST ${path} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n${body}`)
  })
}
