import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findAddress } from '../cli/address.js'
import { Client } from '../cli/client.js'
import { inspectProcess, inspectProcesses } from '../plugins/platform/processes/inspect.js'

// npm run demo [-- --keep]: demonstrates svc on this repository, without an account or network. The built-in agent reports on a
// copy of the repository; its requests for approval are granted.

const root = fileURLToPath(new URL('..', import.meta.url))
const program = join(root, 'dist', 'bin', 'svc')
const keep = process.argv.includes('--keep')
const deadline = AbortSignal.timeout(60_000)
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-demo-')))
const user = join(folder, 'user')
const home = join(user, '.svc')
const copy = join(user, 'code', 'repository')
// Simulates a new user: no SVC_HOME, and the project is below the home.
const { SVC_HOME: _, ...inherited } = process.env
const env = { ...inherited, HOME: user, NO_COLOR: '1' }
const client = new Client({ address: () => findAddress(env), signal: deadline })
/** Observed processes of the daemon: start times by pid. */
const started = new Map<number, string>()
const children: ChildProcess[] = []

interface Run {
  readonly id: string
  readonly status: string
  readonly session_id?: string
  readonly error?: string
}

let step = 0
const say = (text: string) => console.log(`${++step}. ${text}`)
const show = (text: string) => console.log(text.trimEnd().replace(/^/gm, '   | '))

function svc(...args: string[]): string {
  console.log(`   $ svc ${args.join(' ')}`)
  return execFileSync(process.execPath, [program, ...args], { encoding: 'utf8', env, cwd: copy })
}

const get = async <T>(path: string) => (await client.request('GET', path)) as T

/** Clones the repository, or copies the files if there is no history; returns a note about it. */
function copyRepository(): string {
  try {
    execFileSync('git', ['-C', root, 'rev-parse', '--verify', '--quiet', 'HEAD'], { stdio: 'ignore' })
    execFileSync('git', ['clone', '--quiet', '--no-hardlinks', root, copy], { stdio: ['ignore', 'ignore', 'inherit'] })
    return ''
  } catch {
    rmSync(copy, { recursive: true, force: true })
    const left = new Set(['node_modules', 'dist', '.git'])
    cpSync(root, copy, { recursive: true, filter: path => !left.has(basename(path)) })
    return 'This folder is a copy of the files without their git history.'
  }
}

function noteProcesses(daemon: number): void {
  const all = inspectProcesses(process.platform)
  const family = new Set([daemon])
  for (const pid of family) for (const { pid: child, parent } of all.values()) if (parent === pid) family.add(child)
  for (const pid of family) started.set(pid, all.get(pid)?.startTime ?? '')
}

function processesLeft(): number[] {
  return [...started].flatMap(([pid, startTime]) => {
    const found = inspectProcess(pid, process.platform)
    return found && !found.ended && found.startTime === startTime ? [pid] : []
  })
}

async function waitFor<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (deadline.aborted) throw new Error(`${what} did not come within a minute`)
    await sleep(50)
  }
}

/** Prints the transcript with `svc session events --follow`. */
function follow(session: string): ChildProcess {
  console.log(`   $ svc session events ${session} --follow`)
  const child = spawn(process.execPath, [program, 'session', 'events', session, '--follow'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  // Shows only completed reads.
  const going = /\[read\] (?:pending|in_progress)$/
  if (child.stdout) createInterface(child.stdout).on('line', line => going.test(line) || show(line))
  return child
}

/** Grants each permission request until the session stops. */
async function grantAll(workspace: string, session: string, daemon: number): Promise<number> {
  const base = `/api/workspaces/${workspace}/sessions/${session}`
  let granted = 0
  for await (const { event, data } of client.stream(`${base}/stream?frames=raw`, { lastEventId: '0' })) {
    if (event === 'session_stopped') break
    const { turn_id, content } = data as { turn_id: string; content: Record<string, unknown> }
    if (event !== 'permission' || content.status !== 'pending') continue
    noteProcesses(daemon)
    // Lets the request be printed before its answer.
    await sleep(250)
    const body = { request_id: content.request_id, turn_id, decision: 'allow-once' }
    say('The agent asks for permission; it is allowed once')
    console.log(`   ? ${content.command ?? content.title}`)
    console.log(`   POST ${base}/approve ${JSON.stringify(body)}`)
    await client.request('POST', `${base}/approve`, body)
    granted++
  }
  return granted
}

/** Whether sandboxes work here; by default jobs run in one. */
function hasSandboxes(): boolean {
  try {
    execFileSync('bwrap', ['--unshare-all', '--ro-bind', '/', '/', 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

async function demo(): Promise<void> {
  say('Build')
  execFileSync(process.execPath, [join(root, 'scripts', 'build.mjs'), '--code'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })

  for (const name of [home, join(user, 'code')]) mkdirSync(name, { recursive: true })
  const note = copyRepository()
  say(`Copy this repository to ${copy}${note && ', files only: there is no git history here'}`)

  say('Start a daemon on an empty home, on any free port')
  const config = { http: { port: 0 }, ...(hasSandboxes() ? {} : { defaults: { sandbox: 'none' } }) }
  writeFileSync(join(home, 'config.json'), `${JSON.stringify(config)}\n`)
  show(svc('daemon', 'start'))
  const { pid } = JSON.parse(readFileSync(join(home, 'daemon.json'), 'utf8')) as { pid: number }
  noteProcesses(pid)

  say('Register the folder as a workspace')
  show(svc('workspace', 'add', '.'))
  const { workspaces } = await get<{ workspaces: { id: string }[] }>('/api/workspaces')
  const workspace = workspaces[0]?.id ?? ''

  say('Store a job for the agent `report` as a record')
  const prompt = `Report about this repository. ${note} Pause 40ms between steps.`.replace(/ {2,}/g, ' ')
  const record = { scope: { kind: 'workspace', id: workspace }, spec: { name: 'demo', agent_name: 'report', prompt } }
  console.log(`   PUT /api/resources/automation.job/demo ${JSON.stringify(record)}`)
  await client.request('PUT', '/api/resources/automation.job/demo', record)

  say('Trigger it')
  const trigger = JSON.parse(svc('automation', 'jobs', 'trigger', 'demo', '--json')) as { run: Run }
  const path = `/api/automation/runs/${trigger.run.id}`
  const session = await waitFor('the session of the run', async () => (await get<{ run: Run }>(path)).run.session_id)

  say('Follow what the agent does')
  const shown = follow(session)
  children.push(shown)
  const shownEnd = new Promise(resolve => shown.once('close', resolve))
  const granted = await grantAll(workspace, session, pid)
  await shownEnd

  const run = await waitFor('the end of the run', async () => {
    const { run } = await get<{ run: Run }>(path)
    return ['scheduled', 'running'].includes(run.status) ? undefined : run
  })
  if (run.status !== 'completed') throw new Error(`the run ended ${run.status}: ${run.error ?? ''}`)
  if (granted === 0) throw new Error('the agent never asked for permission')
  say(`Run ${run.id} is ${run.status}`)

  const report = join(copy, 'svc-reports', 'report.md')
  say(`The report: ${report}`)
  show(readFileSync(report, 'utf8').split('\n').slice(0, 16).join('\n'))

  say('How the daemon is')
  show(svc('status'))

  say('Stop the daemon')
  show(svc('daemon', 'stop'))
  const left = processesLeft()
  if (left.length > 0) throw new Error(`processes are left: ${left.join(', ')}`)
  say(`Nothing is left of ${started.size} processes`)
}

function fail(error: unknown): void {
  console.error(`\ndemo failed: ${error instanceof Error ? error.message : error}`)
  const logs = join(home, 'logs')
  for (const name of existsSync(logs) ? readdirSync(logs).filter(name => name.endsWith('.log')) : []) {
    console.error(`--- the end of ${name}`)
    console.error(readFileSync(join(logs, name), 'utf8').split('\n').slice(-30).join('\n'))
  }
  process.exitCode = 1
}

function cleanUp(): void {
  for (const child of children) child.kill()
  try {
    execFileSync(process.execPath, [program, 'daemon', 'stop'], { env, stdio: 'ignore' })
  } catch (error) {
    fail(error)
  }
  if (keep) console.log(`kept: ${folder}`)
  else rmSync(folder, { recursive: true, force: true })
}

try {
  await demo()
} catch (error) {
  fail(error)
} finally {
  cleanUp()
}
