import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { AcpAgent } from './acp-agent.js'
import { relay, type Script } from './acp-script.js'
import { call, compareWithBare } from './bare-comparison.js'
import { Child } from './child.js'
import type { Context } from './context.js'
import { makeHome, startDaemon } from './daemon.js'
import type { McpClient } from './mcp-client.js'
import type { Served } from './mcp-server.js'
import { ms, pairs, pause } from './measure.js'
import type { Row } from './report.js'

/** How many of each there are. */
interface Counts {
  readonly tools: number
  readonly skills: number
  readonly entries: number
}

type Home = ReturnType<typeof makeHome>

/** A call and a list over MCP may take so many times what the bare server takes. */
const MOST_OVER_BARE = 1.5
/** Milliseconds that the slowest of a hundred searches among many tools may take. */
const MOST_SEARCH_MS = 10
/** Milliseconds that the daemon as an MCP server may add to the start of a session. */
const MOST_START_MS = 50
/** A server may have some more. */
const TOOLS_OF_ONE = 500
const PATIENCE_MS = 60_000
const WORDS = ['read', 'write', 'list', 'delete', 'find', 'send', 'ticket', 'invoice', 'branch', 'message', 'calendar']

/** Tools, skills and catalogs by the thousand; the daemon as an MCP server. */
export async function benchTools(context: Context): Promise<void> {
  const { temp, quick, report } = context
  const counts: Counts = quick
    ? { tools: 200, skills: 100, entries: 1000 }
    : { tools: 2000, skills: 1000, entries: 10_000 }
  const home = makeHome(temp, 'tools')
  fill(context, home, counts)
  const daemon = await startDaemon(context, home)
  const first = await firstSearch(home.socket, counts.tools)
  const search = JSON.stringify({ query: 'find ticket', limit: 20 })
  const measured = [
    {
      what: `tool search among ${counts.tools}`,
      method: 'POST',
      url: '/api/tools/search',
      body: search,
      clients: 1,
      p99: MOST_SEARCH_MS,
    },
    { what: `catalog of ${counts.skills} skills`, method: 'GET', url: '/api/skills', clients: 1 },
    {
      what: `marketplace search among ${counts.entries}`,
      method: 'GET',
      url: '/api/marketplace/search?q=ticket',
      clients: 1,
    },
  ] as const
  const rows: Row[] = [{ what: `first search among ${counts.tools} tools, servers to start`, ours: ms(first) }]
  for (const one of measured) rows.push(await compareWithBare(context, home.socket, one))
  await daemon.stop()
  rows.push(...(await servedTools(context)), await startedSession(context))
  report.section(`Tools${quick ? ', coarse' : ''}`, rows)
}

/** MCP servers with so many tools, skills of the user, and a catalog. */
function fill({ program }: Context, { home }: Home, counts: Counts): void {
  const words = (i: number) => `${WORDS[i % WORDS.length]} ${WORDS[Math.floor(i / 11) % WORDS.length]}`
  const inputSchema = { type: 'object' as const, properties: { id: { type: 'string' } }, required: ['id'] }
  const mcpServers: Record<string, object> = {}
  for (let first = 0; first < counts.tools; first += TOOLS_OF_ONE) {
    const length = Math.min(TOOLS_OF_ONE, counts.tools - first)
    const tools = Array.from({ length }, (_, i) => first + i).map(i => ({
      name: `tool_${i}`,
      description: `To ${words(i)} of number ${i}`,
      inputSchema,
    }))
    const file = path.join(home, `served-${first}.json`)
    writeFileSync(file, JSON.stringify({ tools, text: 'done' } satisfies Served))
    mcpServers[`from-${first}`] = { command: process.execPath, args: [program('mcp-server'), file] }
  }
  writeFileSync(path.join(home, 'mcp.json'), JSON.stringify({ mcpServers }))
  for (let i = 0; i < counts.skills; i++) {
    const folder = path.join(home, 'skills', `skill-${i}`)
    mkdirSync(folder, { recursive: true })
    writeFileSync(
      path.join(folder, 'SKILL.md'),
      `---\nname: skill-${i}\ndescription: To ${words(i)} well\n---\nDo it step by step.\n`,
    )
  }
  const catalog = path.join(home, 'catalog')
  mkdirSync(catalog)
  const entries = Array.from({ length: counts.entries }, (_, i) => ({
    id: `server-${i}`,
    name: `server-${i}`,
    description: `To ${words(i)} of number ${i}`,
    mcp: { transport: 'stdio', command: 'true' },
  }))
  writeFileSync(path.join(catalog, 'mcp.json'), JSON.stringify({ version: 1, entries }))
  const config = {
    http: { port: 0 },
    tools: { policy: { external_default: 'enabled' } },
    marketplace: { catalog: { base_url: catalog } },
  }
  writeFileSync(path.join(home, 'config.json'), JSON.stringify(config))
}

/** Milliseconds until a search finds the tools of a server that is to be started for it. */
async function firstSearch(socket: string, count: number): Promise<number> {
  const began = performance.now()
  const body = JSON.stringify({ query: `number ${count - 1}`, limit: 20 })
  while (!(await call(socket, 'POST', '/api/tools/search', body)).includes(`tool_${count - 1}"`)) {
    if (performance.now() - began > PATIENCE_MS) throw new Error(`no search finds tool_${count - 1}`)
    await pause(20)
  }
  return performance.now() - began
}

/** `svc mcp serve` beside a bare server that lists the same tools and gives the same answer. */
async function servedTools(context: Context): Promise<Row[]> {
  const { root, temp, program, quick } = context
  const home = makeHome(temp, 'tools-served')
  const daemon = await startDaemon(context, home)
  const client = Child.start<McpClient>(program('mcp-client'))
  const env = { PATH: process.env.PATH ?? '', SVC_HOME: home.home }
  await client.call('connect', 'ours', process.execPath, [path.join(root, 'dist/bin/svc'), 'mcp', 'serve'], env)
  const tool = 'service__workspace_list'
  const file = path.join(temp, 'served.json')
  const { tools, text } = await client.call('look', 'ours', tool)
  writeFileSync(file, JSON.stringify({ tools, text }))
  await client.call('connect', 'bare', process.execPath, [program('mcp-server'), file], env)
  const [rounds, count] = quick ? [3, 50] : [9, 200]
  const row = (what: string, { a, b, ratio }: { a: number; b: number; ratio: number }): Row => ({
    what,
    ours: ms(a),
    baseline: `bare server: ${ms(b)}`,
    ratio,
    value: ratio,
    target: { atMost: MOST_OVER_BARE },
  })
  const rows: Row[] = []
  const one = (name: string) => () => client.call('call', name, tool, count)
  const list = (name: string) => () => client.call('list', name, Math.ceil(count / 5))
  rows.push(row(`MCP: tools/list of ${tools.length}`, await pairs(rounds, list('ours'), list('bare'))))
  rows.push(row('MCP: call of a native tool', await pairs(rounds, one('ours'), one('bare'))))
  await client.call('close')
  await client.kill()
  await daemon.stop()
  return rows
}

/** Starts of sessions whose agent connects to the daemon, beside those of a daemon that hands out nothing. */
async function startedSession(context: Context): Promise<Row> {
  const { temp, program, quick } = context
  const agent = Child.start<AcpAgent>(program('acp-agent'))
  const port = await agent.call('listen', true)
  const replies = await Promise.all(
    [true, false].map(async hosted => {
      const home = makeHome(temp, `tools-hosted-${hosted}`)
      writeFileSync(path.join(home.home, 'config.json'), JSON.stringify({ http: { port: 0 }, mcp: { hosted } }))
      const folder = path.join(home.home, 'agents', 'scripted')
      mkdirSync(folder, { recursive: true })
      const [bash, option, script] = relay(port)
      const head = `name: scripted\npermissions: approve-all\ncommand: "${bash} ${option} '${script}'"`
      writeFileSync(path.join(folder, 'AGENT.md'), `---\n${head}\n---\nYou are started.\n`)
      const daemon = await startDaemon(context, home)
      const work = path.join(temp, `tools-work-${hosted}`)
      mkdirSync(work)
      return { socket: home.socket, daemon, work }
    }),
  )
  const start = (at: (typeof replies)[number] | undefined) => async () => {
    const { socket = '', work = '' } = at ?? {}
    const body = JSON.stringify({ workspace_path: work, agent_name: 'scripted', sandbox: 'none' })
    const began = performance.now()
    const { session } = JSON.parse(await call(socket, 'POST', '/api/sessions', body))
    const place = `/api/workspaces/${session.workspace_id}/sessions/${session.id}`
    // The agent is ready when its first turn has ended.
    const text = JSON.stringify({ kind: 'text', updates: 1, bytes: 1, gapMs: 0 } satisfies Script)
    await call(socket, 'POST', `${place}/prompt`, JSON.stringify({ text, idempotency_key: 'first' }))
    while (!(await call(socket, 'GET', `${place}/events`)).includes('"type":"done"')) {
      if (performance.now() - began > PATIENCE_MS) throw new Error('the first turn does not end')
      await pause(1)
    }
    const elapsed = performance.now() - began
    await call(socket, 'POST', `${place}/stop`, '{}')
    return elapsed
  }
  const [ours, bare] = replies
  const { a, b, ratio } = await pairs(quick ? 3 : 15, start(ours), start(bare))
  for (const { daemon } of replies) await daemon.stop()
  await agent.kill()
  return {
    what: 'first turn of a session that is handed the daemon as an MCP server',
    ours: ms(a),
    baseline: `not handed it: ${ms(b)}`,
    ratio,
    value: a - b,
    target: { atMost: MOST_START_MS, unit: 'ms more' },
  }
}
