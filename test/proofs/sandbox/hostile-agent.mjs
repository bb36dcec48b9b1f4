// An agent that tries every way out of its sandbox, and says of each what it got. The first prompt is JSON: where everything is.
import { createInterface } from 'node:readline'
import { ways } from './ways.mjs'

const LIMIT_MS = 8000
const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const pending = new Map()
let next = 1

function calls(sessionId) {
  const request = (method, params) =>
    new Promise((resolve, reject) => {
      const id = `h${next++}`
      pending.set(id, ({ result, error }) => (error ? reject(new Error(error.message)) : resolve(result)))
      send({ id, method, params: { sessionId, ...params } })
    })
  const acp = async (method, params) => {
    const result = await request(method, params)
    return result?.content ?? (method === 'fs/read_text_file' ? '' : undefined)
  }
  acp.terminal = async (command, args) => {
    const { terminalId } = await request('terminal/create', { command, args })
    await request('terminal/wait_for_exit', { terminalId })
    const { output } = await request('terminal/output', { terminalId })
    return output
  }
  return acp
}

async function attack(sessionId, text) {
  const target = JSON.parse(text.slice(text.indexOf('{"target"'))).target
  target.own = process.env.SVC_SESSION_TOKEN
  const told = {}
  for (const [name, way] of Object.entries(ways(target, calls(sessionId)))) {
    const late = new Promise((_, reject) => setTimeout(reject, LIMIT_MS, new Error('too late')).unref())
    try {
      const got = await Promise.race([Promise.resolve().then(way), late])
      told[name] = got === true || (typeof got === 'string' && got.includes('canary-')) ? 'GOT' : 'nothing'
    } catch (error) {
      told[name] = String(error.message).split('\n')[0].slice(0, 120)
    }
  }
  return told
}

createInterface({ input: process.stdin }).on('line', async line => {
  const { id, method, params, result, error } = JSON.parse(line)
  if (method === undefined) return pending.get(id)?.({ result, error })
  if (method === 'initialize') return send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  if (method === 'session/new') return send({ id, result: { sessionId: 'hostile' } })
  if (method !== 'session/prompt') return id !== undefined && send({ id, result: {} })
  const text = params.prompt.map(block => block.text ?? '').join('\n')
  const words = text.includes('{"target"')
    ? JSON.stringify(await attack(params.sessionId, text))
    : process.env.SVC_SOCKET
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: words } }
  send({ method: 'session/update', params: { sessionId: params.sessionId, update } })
  send({ id, result: { stopReason: 'end_turn' } })
})
