import { spawn } from 'node:child_process'
import { mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import type { Context } from './context.js'
import { answers, makeHome, startDaemon } from './daemon.js'
import { runLoad } from './load-run.js'
import { inTurn, median, ms, pause, perSecond, ratioOf } from './measure.js'
import type { Row } from './report.js'

const ROOTS_DEEP = 10

/** A request that is measured. */
interface Measured {
  readonly what: string
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly body?: string
}

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
  for (const one of measured) rows.push(await compare(context, home.socket, one))
  rows.push({ what: "longest gap of the daemon's loop", ours: ms(await daemon.longestGap()) })
  await daemon.stop()
  report.section('Agents and workspaces', rows)
}

async function compare({ program, temp, quick }: Context, socket: string, one: Measured): Promise<Row> {
  const { method, url, body = '' } = one
  const file = path.join(temp, 'body.json')
  writeFileSync(file, await call(socket, method, url, body))
  const bareSocket = path.join(temp, 'body.sock')
  rmSync(bareSocket, { force: true })
  const bare = spawn(process.execPath, [program('body'), bareSocket, file], { stdio: ['ignore', 'ignore', 'inherit'] })
  const exited = new Promise(resolve => bare.once('exit', resolve))
  while (!(await answers(bareSocket, '/'))) await pause(20)
  const [rounds, seconds] = quick ? [1, 0.5] : [5, 1]
  const load = (at: string) => () => runLoad(program('load'), { socket: at, method, url, clients: 4, seconds, body })
  const [ours = [], base = []] = (await inTurn(rounds + 1, [load(socket), load(bareSocket)])).map(all => all.slice(1))
  bare.kill()
  await exited
  const told = (results: typeof ours) =>
    `${perSecond(median(results.map(r => r.rate)))} p50 ${ms(median(results.map(r => r.p50)))}`
  const [a, b] = [ours, base].map(results => results.map(r => r.rate)) as [number[], number[]]
  const ratio = ratioOf(a, b)
  return { what: one.what, ours: told(ours), baseline: `bare: ${told(base)}`, ratio }
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

function call(socketPath: string, method: string, url: string, body = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = body === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const request = http.request({ socketPath, method, path: url, headers }, response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', chunk => {
        text += chunk
      })
      response.once('end', () =>
        (response.statusCode ?? 500) < 300 ? resolve(text) : reject(new Error(`${method} ${url}: ${text}`)),
      )
    })
    request.once('error', reject)
    request.end(body)
  })
}
