// What sessions are compared with: the bare client of the ACP SDK, which keeps nothing, with the same agent.
import { spawn } from 'node:child_process'
import { Readable, Writable } from 'node:stream'
import { client, methods, ndJsonStream, PROTOCOL_VERSION } from '@agentclientprotocol/sdk'
import { relay, type Script } from './acp-script.js'
import { answer } from './child.js'

interface Connected {
  prompt(script: Script): Promise<unknown>
}
let connected: Connected[] = []
let updates = 0
const groups: number[] = []
process.on('exit', () => {
  for (const group of groups) process.kill(-group, 'SIGKILL')
})

async function connect(port: number): Promise<Connected> {
  const [command = '', ...args] = relay(port)
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'], detached: true })
  if (child.pid !== undefined) groups.push(child.pid)
  const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>)
  const { agent } = client({ name: 'bench' })
    .onNotification(methods.client.session.update, () => {
      updates++
    })
    .connect(stream)
  await agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} })
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd: '/', mcpServers: [] })
  return {
    prompt: script =>
      agent.request(methods.agent.session.prompt, {
        sessionId,
        prompt: [{ type: 'text', text: JSON.stringify(script) }],
      }),
  }
}

const handlers = {
  async connect(port: number, count: number): Promise<void> {
    connected = await Promise.all(Array.from({ length: count }, () => connect(port)))
  },
  /** Milliseconds of each of some turns, one after the other. */
  async turns(count: number, script: Script): Promise<number[]> {
    const times: number[] = []
    for (let i = 0; i < count; i++) {
      const began = performance.now()
      await (connected[0] as Connected).prompt(script)
      times.push(performance.now() - began)
    }
    return times
  },
  /** Milliseconds until a turn of everyone is over. */
  async all(script: Script): Promise<number> {
    const began = performance.now()
    updates = 0
    await Promise.all(connected.map(one => one.prompt(script)))
    if (updates !== connected.length * script.updates) throw new Error(`${updates} updates`)
    return performance.now() - began
  },
}
export type AcpClient = typeof handlers
answer(handlers)
