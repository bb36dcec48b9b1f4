// Tests sessions with real agents and a real reader: `npm run test:real -- [--all] [codex] [claude] [ai] [tasks] [network] …`.
// Without names it runs the agents of each change, with --all every agent. Agents are installed once, at the versions pinned in
// test/real/agents.ts, into $SVC_REAL_CACHE (default: the user's cache folder). Each agent runs test/real/real-agents.ts, AT_ONCE
// at a time; `ai` runs test/real/ai-sdk.ts; `tasks` and `network` run test/real/task-fan-out.ts and test/real/network-peers.ts with
// the agents of each change. No model is needed: agents talk to test/real/fake-model.mjs. A package that cannot be installed is
// reported with the reason, and the others run. Exits with 1 on a failure, with 2 if something was not tested.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { AT_EACH_CHANGE, realAgents } from '../test/real/agents.js'
import { type Cell, RESULT, withRun } from '../test/real/results.js'
import { install, NotInstalled, root, type Tried } from './test-real/install.js'

const TEST_MS = 900_000
/** Concurrent agents: each needs a daemon and up to four processes. */
const AT_ONCE = 3

/** The library that reads the prompt stream in the AI SDK form. */
const READER: Tried = { package: 'ai', version: '7.0.173' }
/** Tests in which the agents of each change share a task or a channel; they need a built daemon. */
const TOGETHER: Readonly<Record<string, string>> = { tasks: 'task-fan-out.ts', network: 'network-peers.ts' }
const tried: Readonly<Record<string, Tried>> = { ...realAgents, ai: READER }

/** Runs the tests of one agent; true when all passed. */
async function tryAgent(name: string): Promise<boolean> {
  const begun = performance.now()
  const file = TOGETHER[name] ?? (tried[name] === READER ? 'ai-sdk.ts' : 'real-agents.ts')
  const script = fileURLToPath(new URL(`../test/real/${file}`, import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', script, name], {
    detached: true,
    env: { ...process.env, SVC_REAL_AGENTS: root },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const timer = setTimeout(() => end(child), TEST_MS)
  const code = await new Promise<number | null>(done => child.once('close', done))
  clearTimeout(timer)
  children.delete(child)
  const passed = code === 0
  const last = code === null ? `  (ended after ${TEST_MS / 1000} s)` : ''
  console.log(`${passed ? 'ok  ' : 'FAIL'}  ${name}  ${seconds(begun)}${last}`)
  if (!passed) console.log(output.trimEnd())
  // The test runner may have written to the same line before it.
  const [, told] = new RegExp(`${RESULT}(.*)`).exec(output) ?? []
  if (told !== undefined) seen[name] = JSON.parse(told)
  return passed
}

/** Results of the agents in this run. */
const seen: Record<string, Record<string, Cell>> = {}

/** Writes test/real/results.json, the source of the tables in README and docs/agents.md. */
function writeResults(): void {
  const file = fileURLToPath(new URL('../test/real/results.json', import.meta.url))
  const before = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
  if (Object.keys(seen).length > 0) writeFileSync(file, `${JSON.stringify(withRun(before, seen), undefined, 2)}\n`)
}

const children = new Set<ChildProcess>()

function end({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}

const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1)} s`

async function main(args: readonly string[]): Promise<number> {
  const named = args.filter(arg => arg !== '--all')
  const together = Object.keys(TOGETHER)
  const each = [...AT_EACH_CHANGE, 'ai', ...together]
  const names = args.includes('--all') ? [...Object.keys(tried), ...together] : named.length > 0 ? named : each
  const unknown = names.find(name => !tried[name] && !TOGETHER[name])
  if (unknown)
    throw new NotInstalled(`nothing called ${unknown}; there are ${[...Object.keys(tried), ...together].join(', ')}`)
  const untried: string[] = []
  const waiting: string[] = []
  for (const name of names) {
    try {
      for (const one of TOGETHER[name] ? AT_EACH_CHANGE : [name]) await install(one, tried[one]!)
      waiting.push(name)
    } catch (error) {
      if (!(error instanceof NotInstalled)) throw error
      untried.push(name)
      console.log(`not tried  ${name}: ${error.message}`)
    }
  }
  let failed = 0
  const lane = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) if (!(await tryAgent(name))) failed++
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
  writeResults()
  const passed = names.length - untried.length - failed
  const without = untried.length === 0 ? '' : `; not tried: ${untried.join(', ')}`
  console.log(`${passed} of ${names.length} passed, ${failed} failed${without}`)
  return failed > 0 ? 1 : untried.length > 0 ? 2 : 0
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    for (const child of children) end(child)
    process.exit(130)
  })
}
process.exitCode = await main(process.argv.slice(2)).catch(error => {
  console.error(error instanceof NotInstalled ? error.message : error)
  return 2
})
