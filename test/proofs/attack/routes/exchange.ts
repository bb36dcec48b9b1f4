import net from 'node:net'

/** Milliseconds in which a request has to be answered, or its connection closed; a busy machine is slow. */
const PATIENCE_MS = 30_000

/** What goes over one connection: the head, and what follows it. */
export interface Sent {
  readonly head: string
  readonly body?: Buffer
  /** How the body goes: at once, a byte at a time and then never the rest, or cut off by an end. */
  readonly pace?: 'at once' | 'slow' | 'cut'
}

export type Came =
  /** `json` is undefined for a stream, which is left as soon as it begins, and for a reply without a body. */
  | { readonly kind: 'reply'; readonly status: number; readonly json: unknown; readonly text: string }
  | { readonly kind: 'closed'; readonly why: string }
  | { readonly kind: 'hangs' }

/** Sends bytes over a connection of its own; resolves with the first reply, or with how the connection ended. */
export function exchange(where: net.NetConnectOpts, { head, body, pace = 'at once' }: Sent): Promise<Came> {
  return new Promise(resolve => {
    const socket = net.connect(where)
    let text = ''
    let why = 'ended'
    const settle = (came: Came) => {
      clearTimeout(timer)
      clearInterval(drip)
      socket.destroy()
      resolve(came)
    }
    const timer = setTimeout(() => settle({ kind: 'hangs' }), PATIENCE_MS)
    let drip: NodeJS.Timeout | undefined
    socket.setEncoding('utf8').on('data', data => {
      text += data
      const reply = replyIn(text, false)
      if (reply) settle(reply)
    })
    socket.on('error', error => {
      why = error.message
    })
    socket.on('close', () => settle(replyIn(text, true) ?? { kind: 'closed', why }))
    // In one write: a second one could fail because the reply is there already, and Node would drop that.
    const all = Buffer.concat([Buffer.from(head, 'latin1'), body ?? Buffer.alloc(0)])
    if (pace === 'at once') socket.write(all)
    else if (pace === 'cut') socket.end(all.subarray(0, all.length - ((body?.length ?? 0) >> 1)))
    else {
      socket.write(head)
      let sent = 0
      drip = setInterval(() => {
        // The caller gives up: what it began must not stay.
        if (sent === 8) return settle({ kind: 'closed', why: 'given up' })
        socket.write(body?.subarray(sent, ++sent) ?? '')
      }, 50)
    }
  })
}

function replyIn(text: string, over: boolean): Came | undefined {
  const at = text.indexOf('\r\n\r\n')
  if (at < 0) return undefined
  const head = text.slice(0, at).toLowerCase()
  const chunked = head.includes('transfer-encoding: chunked')
  const body = chunked ? text.slice(at + 4).replace(/(?:^|\r\n)[0-9a-f]+\r\n/g, '') : text.slice(at + 4)
  const status = Number(/^http\/1\.1 (\d+)/.exec(head)?.[1] ?? 0)
  if (status === 100) return replyIn(body, over)
  if (status === 101 || head.includes('text/event-stream'))
    return { kind: 'reply', status, json: undefined, text: head }
  const length = /content-length: (\d+)/.exec(head)?.[1]
  if (!over && (length === undefined || Buffer.byteLength(body) < Number(length))) return undefined
  return { kind: 'reply', status, json: parsed(body), text: body.slice(0, 300) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
