import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'

/** A request that an endpoint received. */
export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** The connection is cut instead. */
  readonly cut?: boolean
}

/** An HTTP server on a free port that answers as a test says, and remembers what it was asked. */
export class HttpEndpoint {
  readonly received: Received[] = []

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static async start(answer: (request: Received) => Answer | Promise<Answer>): Promise<HttpEndpoint> {
    const server = createServer(async (request, response) => {
      const parts: Buffer[] = []
      for await (const part of request) parts.push(part as Buffer)
      const { method = '', url = '', headers } = request
      const received = { method, path: url, headers, body: Buffer.concat(parts).toString() }
      endpoint.received.push(received)
      const { status = 200, headers: more = {}, body, cut } = await answer(received)
      if (cut) return void request.socket.destroy()
      response.writeHead(status, { 'content-type': 'application/json', ...more })
      response.end(body === undefined ? '' : JSON.stringify(body))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const endpoint = new HttpEndpoint(server, (server.address() as { port: number }).port)
    return endpoint
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  close(): Promise<void> {
    this.server.closeAllConnections()
    return new Promise(resolve => this.server.close(() => resolve()))
  }
}
