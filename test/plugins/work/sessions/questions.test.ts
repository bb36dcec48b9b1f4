// proof, timeout: 120s: an agent that asks without end, in a daemon of its own
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed, until } from '../../../e2e/installed.js'
import type { Reply } from '../../../harness/kernel.js'

const AGENT = fileURLToPath(new URL('../../../fixtures/acp-agent.mjs', import.meta.url))
const PATIENCE_MS = 90_000
/** How often a slow look is taken again: something else on the machine slows one, a fault slows all. */
const LOOKS = 6
/** More than are asked before the test is over. */
const ENDLESS = 1_000_000
/** Questions of one session that wait for a person at the same time. */
const OPEN = 16
const OPTIONS = [
  { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
  { optionId: 'no', name: 'No', kind: 'reject_once' },
]
const question = JSON.stringify({
  toolCall: { toolCallId: 'call', kind: 'execute', title: 'Run ls', rawInput: { command: 'ls' } },
  options: OPTIONS,
})

const at = new Installed()
const root = path.join(at.folder, 'work')
let workspace = ''

test.before(async () => {
  const folder = path.join(at.home, 'agents', 'asks')
  for (const each of [root, folder]) mkdirSync(each, { recursive: true })
  const head = `name: asks\npermissions: approve-reads\ncommand: '${process.execPath} ${AGENT}'`
  writeFileSync(path.join(folder, 'AGENT.md'), `---\n${head}\n---\nAsk.\n`)
  await at.start(['daemon', 'start', '--foreground']).shows(/daemon is ready/)
  workspace = (await ask('POST', '/api/workspaces/resolve', { path: root })).workspace.id
})
test.after(() => at.remove())

async function ask(method: string, url: string, body?: unknown): Promise<Reply> {
  const { status, text } = await at.request('socket', method, url, body)
  if (status >= 300) throw new Error(`${method} ${url}: ${status} ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}

async function session(): Promise<{ id: string; base: string }> {
  const { id } = (await ask('POST', '/api/sessions', { workspace, agent_name: 'asks' })).session
  const base = `/api/workspaces/${workspace}/sessions/${id}`
  await turn(base, 'say ready')
  return { id, base }
}

const send = async (base: string, text: string): Promise<string> =>
  (await ask('POST', `${base}/prompt`, { text })).prompt.new_turn_id
const eventsOf = async (base: string, turnId: string): Promise<Reply[]> =>
  (await ask('GET', `${base}/events?turn_id=${turnId}&limit=1000`)).events

async function turn(base: string, text: string): Promise<Reply[]> {
  const id = await send(base, text)
  return until(
    async () => {
      const events = await eventsOf(base, id)
      return events.some(({ type }) => type === 'done') ? events : undefined
    },
    PATIENCE_MS,
    () => `the end of ${text}`,
  )
}

/** Median milliseconds of the status and of another session's turn, asked again and again. */
async function medians(base: string): Promise<readonly [number, number]> {
  const timed = async (count: number, work: () => Promise<unknown>) => {
    const took: number[] = []
    for (let i = 0; i < count; i++) {
      const startedAt = performance.now()
      await work()
      took.push(performance.now() - startedAt)
    }
    return took.sort((a, b) => a - b)[count >> 1]!
  }
  return Promise.all([timed(100, () => ask('GET', '/api/status')), timed(15, () => turn(base, 'say y'))])
}

test('an agent that asks endlessly has few open questions, is named, and delays no other', async () => {
  const flooding = await session()
  const other = await session()
  await medians(other.base)
  const idle = await medians(other.base)

  const flood = await send(flooding.base, `ask-many ${ENDLESS} 60 ${question}`)
  await until(
    async () => (await eventsOf(flooding.base, flood)).some(({ type }) => type === 'runtime_warning') || undefined,
    PATIENCE_MS,
    () => 'the warning',
  )
  let busy = await medians(other.base)
  for (let look = 1; look < LOOKS && busy.some((ms, of) => ms > idle[of]! * 4); look++) busy = await medians(other.base)
  assert.ok(busy[0] < idle[0] * 4, `GET /api/status: ${busy[0]} ms, idle ${idle[0]} ms`)
  assert.ok(busy[1] < idle[1] * 4, `a turn of another session: ${busy[1]} ms, idle ${idle[1]} ms`)

  const turn = await send(other.base, `ask ${question}`)
  const pending = await until(
    async () => (await eventsOf(other.base, turn)).find(({ type }) => type === 'permission'),
    PATIENCE_MS,
    () => 'the question of the other session',
  )
  const answer = { request_id: pending.content.request_id, turn_id: turn, decision: 'allow-once' }
  await ask('POST', `${other.base}/approve`, answer)
  await until(
    async () => (await eventsOf(other.base, turn)).find(({ type }) => type === 'done'),
    PATIENCE_MS,
    () => 'the end of the turn that asked',
  )

  const events = await eventsOf(flooding.base, flood)
  const open = events.filter(({ type, content }) => type === 'permission' && content.status === 'pending')
  assert.is(open.length, OPEN)
  assert.is(events.filter(({ type }) => type === 'permission').length, OPEN, 'what is refused is not told one by one')
  const { diagnostics = [], items = diagnostics } = await ask('GET', '/api/doctor')
  const item = items.find((one: Reply) => one.code === 'session_permission_flood')
  assert.is(item?.evidence.session_id, flooding.id)
  assert.ok(item.evidence.refused > 0)

  // The questions that wait can be answered while the agent asks on.
  const first = { request_id: open[0].content.request_id, turn_id: flood, decision: 'reject-once' }
  assert.is((await ask('POST', `${flooding.base}/approve`, first)).status, 'rejected')
  await ask('POST', `${flooding.base}/prompt/cancel`)
  const warned = await until(
    async () => {
      const reports = (await eventsOf(flooding.base, flood)).filter(({ type }) => type === 'runtime_warning')
      return reports.length > 1 ? reports.at(-1) : undefined
    },
    PATIENCE_MS,
    () => 'how many were refused',
  )
  assert.is(warned.content.warning, 'permission_flood')
  assert.ok(warned.content.refused > 1)
})

test('a request with more paths than the limit is refused, whatever the paths', async () => {
  const { base } = await session()
  const locations = Array.from({ length: 101 }, (_, index) => ({ path: path.join(root, String(index)) }))
  const many = { toolCall: { toolCallId: 'call', kind: 'read', title: 'Read', locations }, options: OPTIONS }
  const events = await turn(base, `ask ${JSON.stringify(many)}`)
  assert.match(events.map(({ content }) => content.text ?? '').join(''), /answer: no/)
  assert.match(events.find(({ type }) => type === 'runtime_warning')?.content.text, /101 paths/)
})

test.run()
