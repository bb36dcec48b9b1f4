// What one stream with many readers is compared with: a bare server that writes the same bytes to everybody.
import http, { type ServerResponse } from 'node:http'
import type { Script } from './acp-script.js'
import { answer } from './child.js'
import { pause } from './measure.js'

const handlers = {
  /** A GET subscribes, a POST plays its script to all who did. */
  listen(socket: string): Promise<void> {
    const readers = new Set<ServerResponse>()
    const play = async ({ updates, bytes, gapMs }: Script) => {
      const text = 'x'.repeat(bytes)
      const send = (event: string, data: object) => {
        const frame = Buffer.from(`id: 1\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
        for (const reader of readers) reader.write(frame)
      }
      for (let i = 0; i < updates; i++) {
        send('tool_call', { title: `@${Date.now()}@`, text, more: ' '.repeat(400) })
        // Everybody else gets a turn, as a pipe would give it.
        await (gapMs > 0 ? pause(gapMs) : new Promise(setImmediate))
      }
      send('done', {})
    }
    const server = http.createServer((request, response) => {
      if (request.method === 'GET') {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        readers.add(response)
        response.on('close', () => readers.delete(response))
        return
      }
      let body = ''
      request.setEncoding('utf8').on('data', text => {
        body += text
      })
      request.on('end', () => {
        response.end('{}')
        void play(JSON.parse(JSON.parse(body).text))
      })
    })
    return new Promise(resolve => server.listen(socket, 4096, resolve))
  },
}
export type Broadcast = typeof handlers
answer(handlers)
