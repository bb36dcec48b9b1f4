import { mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { call, compareWithBare, type Measured } from './bare-comparison.js'
import type { Context } from './context.js'
import { makeHome, startDaemon } from './daemon.js'
import { ms } from './measure.js'
import type { Row } from './report.js'

const ROOTS_DEEP = 10

/** Lists and searches among many agents, workspaces among many nested roots; beside a bare fastify with the same reply. */
export async function benchAgents(context: Context): Promise<void> {
  const { temp, quick, report } = context
  const [agents, roots] = quick ? [1000, 100] : [10_000, 1000]
  const home = makeHome(temp, 'agents')
  for (let i = 0; i < agents; i++) writeAgent(path.join(home.home, 'agents'), i)
  const daemon = await startDaemon(context, home, { gaps: true })
  const folder = realpathSync(temp)
  const deepest = await registerRoots(home.socket, path.join(folder, 'roots'), roots)
  const began = performance.now()
  await call(home.socket, 'GET', '/api/agents')
  const first = performance.now() - began
  const found = { method: 'POST', url: '/api/workspaces/resolve' } as const
  const catalog = `/api/agents/catalog?workspace=${encodeURIComponent(deepest)}`
  const measured: readonly Measured[] = [
    { what: `agent catalog, page of 50 of ${agents}`, method: 'GET', url: catalog },
    { what: 'agent catalog, searched', method: 'GET', url: `${catalog}&q=team-7` },
    { what: `agent list, all ${agents}`, method: 'GET', url: '/api/agents' },
    { what: 'agent by name', method: 'GET', url: '/api/agents/agent-77' },
    {
      what: `nearest of ${roots} nested roots`,
      ...found,
      body: JSON.stringify({ path: path.join(deepest, 'src', 'a') }),
    },
  ]
  const rows: Row[] = [{ what: `first list after the start, ${agents} files to read`, ours: ms(first) }]
  await daemon.longestGap()
  for (const one of measured) rows.push(await compareWithBare(context, home.socket, one))
  rows.push({ what: "longest gap of the daemon's loop", ours: ms(await daemon.longestGap()) })
  await daemon.stop()
  report.section('Agents and workspaces', rows)
}

function writeAgent(folder: string, i: number): void {
  mkdirSync(path.join(folder, `agent-${i}`), { recursive: true })
  const head = `name: agent-${i}\nmodel: some-model\ncommand: agent --number ${i}\ncategory_path: [Teams, team-${i % 40}]`
  writeFileSync(path.join(folder, `agent-${i}`, 'AGENT.md'), `---\n${head}\n---\nYou are number ${i}.\n`)
}

/** Registers roots inside each other, in chains; returns the innermost one of the last chain. */
async function registerRoots(socket: string, folder: string, count: number): Promise<string> {
  let root = folder
  for (let i = 0; i < count; i++) {
    root = i % ROOTS_DEEP === 0 ? path.join(folder, `chain-${i}`) : path.join(root, `in-${i}`)
    mkdirSync(root, { recursive: true })
    await call(socket, 'POST', '/api/workspaces', JSON.stringify({ root_dir: root }))
  }
  return root
}
