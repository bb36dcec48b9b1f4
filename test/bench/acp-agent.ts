// A scripted agent for any number of sessions in one process, so that it is not what is measured. What runs it connects
// over TCP: see RELAY in acp-script.ts. Plain JSON-RPC, line by line.
import net from 'node:net'
import { createInterface } from 'node:readline'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import type { Script } from './acp-script.js'
import { answer } from './child.js'
import { pause } from './measure.js'

function serve(socket: net.Socket, greets: boolean): void {
  socket.setNoDelay(true)
  socket.on('error', () => {})
  const send = (message: object) => {
    const taken = socket.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    return taken || socket.destroyed ? undefined : new Promise(resolve => socket.once('drain', resolve))
  }
  createInterface({ input: socket }).on('line', async line => {
    const { id, method, params } = JSON.parse(line)
    if (id === undefined) return
    if (method === 'session/new' && greets) for (const server of params.mcpServers) await greet(server)
    if (method === 'session/prompt') await play(JSON.parse(params.prompt.at(-1).text), params.sessionId, send)
    await send({ id, result: RESULTS[method] ?? {} })
  })
}

const RESULTS: Readonly<Record<string, object>> = {
  initialize: { protocolVersion: 1, agentCapabilities: {} },
  'session/new': { sessionId: 'acp' },
  'session/prompt': { stopReason: 'end_turn' },
}

async function greet({ name, command, args, env }: { name: string; command: string; args: string[]; env: Variable[] }) {
  const client = new Client({ name: 'bench', version: '1.0.0' })
  const given = Object.fromEntries(env.map(({ name, value }) => [name, value]))
  await client.connect(new StdioClientTransport({ command, args, env: { PATH: process.env.PATH ?? '', ...given } }))
  const { tools } = await client.listTools()
  if (tools.length === 0) throw new Error(`the server ${name} has no tools`)
}

interface Variable {
  readonly name: string
  readonly value: string
}

/** Tool calls are told one by one, and say when; texts are gathered by whoever reads them. */
async function play(script: Script, sessionId: string, send: (message: object) => Promise<unknown> | undefined) {
  const text = 'x'.repeat(script.bytes)
  for (let i = 0; i < script.updates; i++) {
    const call = { sessionUpdate: 'tool_call', toolCallId: `c${i}`, title: `@${Date.now()}@`, rawInput: { text } }
    const chunk = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }
    await send({ method: 'session/update', params: { sessionId, update: script.kind === 'tool' ? call : chunk } })
    if (script.gapMs > 0) await pause(script.gapMs)
  }
}

const handlers = {
  /** @param greets it starts the MCP servers that a session is given and asks for their tools, as agents do */
  listen(greets = false): Promise<number> {
    const server = net.createServer(socket => serve(socket, greets))
    return new Promise(resolve =>
      server.listen(0, '127.0.0.1', () => resolve((server.address() as net.AddressInfo).port)),
    )
  },
}
export type AcpAgent = typeof handlers
answer(handlers)
