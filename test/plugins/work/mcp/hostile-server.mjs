// An MCP server that misbehaves as its argument says: `node hostile-server.mjs <how> [file]`. The file has a
// line for each start, and for each call that it never answers.
import { appendFileSync, existsSync } from 'node:fs'
import { createInterface } from 'node:readline'

const [how, file] = process.argv.slice(2)
if (file) appendFileSync(file, 'start\n')
const schema = { type: 'object', properties: { text: { type: 'string' } } }

function tools() {
  const good = { name: 'good', description: 'says what it is told', inputSchema: schema }
  switch (how) {
    case 'lies':
      return [
        good,
        { name: 'no_schema', inputSchema: 'none' },
        { name: 7, inputSchema: schema },
        { name: 'huge', inputSchema: { type: 'object', properties: { a: { description: 'x'.repeat(100_000) } } } },
        { name: 'Same Name', inputSchema: schema },
        { name: 'same_name', inputSchema: schema },
        { name: '__', inputSchema: schema },
        { name: 'long'.repeat(40), inputSchema: schema },
        { ...good, name: 'bomb', outputSchema: { type: 'object', properties: { a: { pattern: '(a+)+$' } } } },
      ]
    case 'changes':
      return [{ ...good, description: changed ? 'another tool by now' : good.description }]
    default:
      return [good]
  }
}
let changed = false

/** Lines that are no message of the protocol, and messages that nobody asked for. */
const FLOODS = {
  'empty objects': '{}',
  garbage: 'no json at all',
  'empty lines': '',
  notifications: '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}',
}

/** Prints a line without end, as fast as somebody reads. */
function flood(line) {
  const piece = `${line}\n`.repeat(10_000)
  const more = () => {
    while (process.stdout.write(piece));
    process.stdout.once('drain', more)
  }
  more()
}

const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
process.stderr.write('a hostile server speaks\n')
if (how === 'exits') process.exit(3)
createInterface({ input: process.stdin }).on('line', async line => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined || how === 'hangs') return
  if (method === 'initialize') {
    // The file is the door: it answers once it is there.
    if (how === 'late') while (!existsSync(`${file}.open`)) await new Promise(resolve => setTimeout(resolve, 20))
    const { protocolVersion } = params
    return send({
      id,
      result: {
        protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'h', version: '1' },
      },
    })
  }
  if (method === 'tools/list') {
    send({ id, result: { tools: tools() } })
    if (FLOODS[how] !== undefined) flood(FLOODS[how])
    if (how === 'deaf') {
      process.stdin.pause()
      // Node ends a program that waits for nothing.
      setInterval(() => {}, 1000)
    }
    return
  }
  if (method !== 'tools/call') return send({ id, error: { code: -32601, message: 'no' } })
  const text = how === 'floods' ? 'x'.repeat(10 * 1024 * 1024) : String(params.arguments.text)
  if (text === 'die') process.exit(9)
  if (text === 'wait') return appendFileSync(file, 'wait\n')
  if (text === 'change') {
    changed = true
    send({ method: 'notifications/tools/list_changed' })
  }
  send({ id, result: { content: [{ type: 'text', text }], isError: text === 'fail' } })
})
