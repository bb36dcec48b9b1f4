// An MCP server whose one tool tells what a program of it sees and can do: `node peeking-server.mjs`.
import { existsSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const answers = {
  read: file => readFileSync(file, 'utf8'),
  there: file => String(existsSync(file)),
  write: file => writeFileSync(file, 'written') ?? 'written',
  cwd: () => process.cwd(),
  env: name => process.env[name] ?? 'unset',
  pid: () => String(process.pid),
  network: () => readlinkSync('/proc/self/ns/net'),
}
const inputSchema = { type: 'object', properties: { what: { type: 'string' }, of: { type: 'string' } } }
const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  if (method === 'initialize') {
    const { protocolVersion } = params
    const serverInfo = { name: 'peek', version: '1' }
    return send({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo } })
  }
  if (method === 'tools/list')
    return send({ id, result: { tools: [{ name: 'peek', description: 'looks', inputSchema }] } })
  const { what, of } = params.arguments ?? {}
  let text
  try {
    text = answers[what](of)
  } catch (error) {
    text = error.code
  }
  send({ id, result: { content: [{ type: 'text', text }] } })
})
