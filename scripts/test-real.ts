// Tries sessions with real agents and a real reader: `npm run test:real -- [codex] [claude] [ai]`. Installs them once, at the versions that
// test/real/agents.ts pins, into $SVC_REAL_CACHE (default: the user's cache folder), and runs test/real/real-agents.ts for
// all of them at once, and test/real/ai-sdk.ts. No model is needed: they talk to test/real/fake-model.mjs. Exits with 1 when anything is wrong,
// with 2 when an agent cannot be installed.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { realAgents } from '../test/real/agents.js'

const run = promisify(execFile)
const INSTALL_MS = 180_000
const TEST_MS = 240_000

class NotInstalled extends Error {}

/** A package that something is tried with. */
interface Tried {
  readonly package: string
  readonly version: string
}

/** What reads the answer to a prompt in the form of the AI SDK. */
const READER: Tried = { package: 'ai', version: '7.0.173' }
const tried: Readonly<Record<string, Tried>> = { ...realAgents, ai: READER }

/** Installs a package unless it is there at its version; a folder is there whole or not at all. */
async function install(root: string, name: string, agent: Tried): Promise<void> {
  const folder = path.join(root, name)
  const manifest = path.join(folder, 'node_modules', agent.package, 'package.json')
  const has = existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version === agent.version
  if (has) return
  const begun = performance.now()
  const fresh = `${folder}.${process.pid}`
  await mkdir(fresh, { recursive: true })
  const what = `${agent.package}@${agent.version}`
  try {
    const quiet = ['--no-audit', '--no-fund', '--loglevel=error', '--fetch-retries=1']
    await run('npm', ['install', '--prefix', fresh, what, ...quiet], { timeout: INSTALL_MS })
    await rm(folder, { recursive: true, force: true })
    await rename(fresh, folder)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true })
    const { stderr, message } = error as { stderr?: string; message: string }
    throw new NotInstalled(`${what} cannot be installed: is the npm registry reachable?\n${stderr || message}`)
  }
  console.log(`installed ${what}  ${seconds(begun)}`)
}

/** Runs the tests of one agent; true when all passed. */
async function tryAgent(root: string, name: string): Promise<boolean> {
  const begun = performance.now()
  const file = tried[name] === READER ? 'ai-sdk.ts' : 'real-agents.ts'
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
  return passed
}

const children = new Set<ChildProcess>()

function end({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}

const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1)} s`

async function main(args: readonly string[]): Promise<number> {
  const names = args.length > 0 ? args : Object.keys(tried)
  const unknown = names.find(name => !tried[name])
  if (unknown) throw new NotInstalled(`nothing called ${unknown}; there are ${Object.keys(tried).join(', ')}`)
  const cache = process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache')
  const root = process.env.SVC_REAL_CACHE || path.join(cache, 'svc-real-agents')
  for (const name of names) await install(root, name, tried[name]!)
  const passed = await Promise.all(names.map(name => tryAgent(root, name)))
  return passed.every(Boolean) ? 0 : 1
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
