// Homes whose sessions run the scripted agent, and requests to their daemons.
import { mkdirSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { relay } from './acp-script.js'
import { makeHome } from './daemon.js'

/** A home whose agent leads to the scripted one. */
export function homeWith(temp: string, name: string, port: number): ReturnType<typeof makeHome> {
  const home = makeHome(temp, name)
  leadTo(home, port)
  return home
}

/** Lets the agent of a home lead to the scripted one. */
export function leadTo(home: ReturnType<typeof makeHome>, port: number): void {
  // A hundred agents that start at once on a busy machine take their time.
  const session = { startup: { initialize_timeout: '5m', new_session_timeout: '5m' } }
  const config = { http: { port: 0, max_streams: 10_000 }, limits: { max_concurrent_agents: 1000 }, session }
  writeFileSync(path.join(home.home, 'config.json'), JSON.stringify(config))
  const folder = path.join(home.home, 'agents', 'scripted')
  mkdirSync(folder, { recursive: true })
  const [bash, option, script] = relay(port)
  const command = `command: "${bash} ${option} '${script}'"`
  writeFileSync(
    path.join(folder, 'AGENT.md'),
    `---\nname: scripted\npermissions: approve-all\n${command}\n---\nYou do what the script says.\n`,
  )
}

/** Sequence of a session's newest event. */
export async function last(socket: string, at: string): Promise<number> {
  return (await call(socket, 'GET', `${at}/events?limit=1`)).events[0]?.sequence ?? 0
}

/** A request over the socket of a daemon. Throws its refusals. */
// biome-ignore lint/suspicious/noExplicitAny: replies of any shape
export function call(socketPath: string, method: string, url: string, body?: object): Promise<any> {
  const text = body === undefined ? '' : JSON.stringify(body)
  const headers = text === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, method, path: url, headers }, response => {
      let reply = ''
      response.setEncoding('utf8').on('data', piece => {
        reply += piece
      })
      response.once('end', () => {
        if ((response.statusCode ?? 500) >= 300) reject(new Error(`${method} ${url}: ${reply}`))
        else resolve(reply === '' ? undefined : JSON.parse(reply))
      })
    })
    request.once('error', reject).end(text)
  })
}
