// An agent that tells what it is handed: a prompt names a file of its steps, each a way to tell one text. Its texts do not stand
// in the prompt, where their pieces would be kept as they are.
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const update = (sessionId, fields) => send({ method: 'session/update', params: { sessionId, update: fields } })
const chunk = (sessionId, text) =>
  update(sessionId, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })
const soon = () => new Promise(resolve => setTimeout(resolve, 2))

const ways = {
  async said(id, pieces) {
    for (const piece of pieces) chunk(id, piece)
    chunk(id, '\n')
  },
  async thought(id, pieces) {
    for (const text of pieces) update(id, { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text } })
  },
  async tool(id, pieces) {
    const text = pieces.join('')
    const fields = { toolCallId: `t${Math.random()}`, kind: 'execute', status: 'completed' }
    update(id, { sessionUpdate: 'tool_call', ...fields, title: `run ${text}`, rawInput: { command: [text] } })
  },
  async title(id, pieces) {
    update(id, { sessionUpdate: 'session_info_update', title: pieces.join('') })
  },
  async stderr(_, pieces) {
    for (const piece of pieces) {
      process.stderr.write(piece)
      await soon()
    }
    process.stderr.write('\n')
  },
  async line(_, pieces) {
    process.stdout.write(`no protocol: ${pieces.join('')}\n`)
  },
  async crash(_, pieces) {
    process.stderr.write(`fatal: ${pieces.join('')}\n`)
    await soon()
    process.exit(3)
  },
  async error(_, pieces) {
    throw { code: -32603, message: `failed: ${pieces.join('')}`, data: { why: pieces.join('') } }
  },
}

const handlers = {
  initialize: async () => ({ protocolVersion: 1, agentCapabilities: {} }),
  'session/new': async () => ({ sessionId: `leaky-${process.pid}` }),
  async 'session/prompt'({ sessionId, prompt }) {
    const [, file] = /steps: (\S+)/.exec(prompt.at(-1).text) ?? []
    for (const [way, pieces] of file ? JSON.parse(readFileSync(file, 'utf8')) : []) await ways[way](sessionId, pieces)
    return { stopReason: 'end_turn' }
  },
}

createInterface({ input: process.stdin }).on('line', async line => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined || method === undefined) return
  try {
    send({ id, result: (await handlers[method]?.(params)) ?? {} })
  } catch (error) {
    send({ id, error })
  }
})
