import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { inspectProcess, inspectProcesses } from '../../plugins/platform/processes/inspect.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
export const program = join(root, 'dist', 'bin', 'svc')

/** Milliseconds for an output to come: many times what it takes, for the machine may be busy; what ended fails at once. */
const SHOWS_MS = 60_000

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Replied {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** A command that goes on, and what it has printed. */
export interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ran>
  text(): string
  /** Resolves when the output matches; throws with the output after `ms`. */
  shows(pattern: RegExp, ms?: number): Promise<void>
}

/** The built program on an empty home, with any free HTTP port, in an environment that has nothing of the caller's. */
export class Installed {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-e2e-')))
  readonly user = join(this.folder, 'user')
  readonly home: string
  readonly env: Readonly<Record<string, string>>

  /** @param how `default`: without SVC_HOME, so that the home of the daemon lies in that of the user */
  constructor(config: unknown = { http: { port: 0 } }, how: 'given' | 'default' = 'given') {
    if (!existsSync(program)) throw new Error('dist/ is missing; run: node scripts/build.mjs --code')
    this.home = how === 'given' ? join(this.folder, 'home') : join(this.user, '.svc')
    this.env = {
      ...watching(),
      PATH: process.env.PATH ?? '',
      HOME: this.user,
      ...(how === 'given' ? { SVC_HOME: this.home } : {}),
      GIT_CONFIG_GLOBAL: '/dev/null',
      ...(process.env.SVC_TEST_MARK === undefined ? {} : { SVC_TEST_MARK: process.env.SVC_TEST_MARK }),
    }
    for (const folder of [this.home, this.user]) mkdirSync(folder, { recursive: true })
    this.writeHome('config.json', JSON.stringify(config))
  }

  writeHome(name: string, text: string): void {
    mkdirSync(dirname(join(this.home, name)), { recursive: true })
    writeFileSync(join(this.home, name), text)
  }

  /** A folder with a few files, as a git repository with one commit. */
  makeRepository(name: string): string {
    const path = join(this.folder, name)
    mkdirSync(join(path, 'src'), { recursive: true })
    writeFileSync(join(path, 'README.md'), '# Demo\n\nA small repository.\n')
    writeFileSync(join(path, 'src', 'main.ts'), '// TODO: say more\nconsole.log(1)\n')
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=Test', '-c', 'user.email=test@example.com', ...args], {
        cwd: path,
        env: this.env,
      })
    git('init', '--quiet', '--initial-branch=main')
    git('add', '.')
    git('commit', '--quiet', '--message', 'First commit')
    return path
  }

  start(args: readonly string[], cwd = this.folder, env: Readonly<Record<string, string>> = {}): Running {
    const child = spawn(process.execPath, [program, ...args], {
      cwd,
      env: { ...this.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const out = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', text => {
        out[name] += text
      })
    }
    const ended = new Promise<Ran>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', code => resolve({ code, ...out }))
    })
    const text = () => out.stdout + out.stderr
    const shows = async (pattern: RegExp, ms = SHOWS_MS) => {
      const missing = () => `${pattern} in the output of svc ${args.join(' ')}:\n${text()}`
      const over = ended.then(() => 'over' as const)
      const shown = () => pattern.test(text()) || undefined
      await Promise.race([until(shown, ms, missing), over])
      if (!shown()) throw new Error(`it ended without ${missing()}`)
    }
    return { child, ended, text, shows }
  }

  run(args: readonly string[], cwd?: string, env?: Readonly<Record<string, string>>): Promise<Ran> {
    return this.start(args, cwd, env).ended
  }

  /** Standard output of a command that must succeed. */
  async svc(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(args)
    if (code !== 0) throw new Error(`svc ${args.join(' ')} ended with ${code}:\n${stdout}${stderr}${this.logTail()}`)
    return stdout
  }

  /** The body that a command answers with. */
  async json<T>(...args: string[]): Promise<T> {
    return JSON.parse(await this.svc(...args, '--json')) as T
  }

  get discovery(): { readonly pid: number; readonly port: number } {
    return JSON.parse(readFileSync(join(this.home, 'daemon.json'), 'utf8'))
  }

  /** What stands for the operator over TCP; there once the daemon has run. */
  get token(): string {
    return readFileSync(join(this.home, 'operator.token'), 'utf8').trim()
  }

  request(door: 'socket' | 'tcp', method: string, path: string, body?: unknown): Promise<Replied> {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const at =
      door === 'socket'
        ? { socketPath: join(this.home, 'daemon.sock') }
        : { host: '127.0.0.1', port: this.discovery.port }
    const headers = {
      ...(door === 'tcp' ? { authorization: `Bearer ${this.token}` } : {}),
      ...(text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    }
    return new Promise((resolve, reject) => {
      request({ ...at, method, path, headers, agent: false }, async response => {
        const chunks: Buffer[] = []
        for await (const chunk of response) chunks.push(chunk)
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(chunks).toString() })
      })
        .on('error', reject)
        .end(text)
    })
  }

  /** What every process that this home started has in its environment; the daemon has to run and to have started one. */
  processMark(): string {
    const daemon = this.discovery.pid
    for (const { pid, parent } of inspectProcesses(process.platform).values()) {
      const mark = parent === daemon && /(?:^|\0)(SVC_HOME_ID=[^\0]+)/.exec(environmentOf(pid))?.[1]
      if (mark) return mark
    }
    throw new Error(`the daemon (pid ${daemon}) has no process with SVC_HOME_ID`)
  }

  logTail(): string {
    const file = join(this.home, 'logs', 'svc.log')
    return existsSync(file) ? `\n--- log\n${readFileSync(file, 'utf8').split('\n').slice(-30).join('\n')}` : ''
  }

  /** Ends the daemon when it runs, whatever happened, and removes everything. */
  async remove(): Promise<void> {
    await this.run(['daemon', 'stop']).catch(() => {})
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Processes with this in their environment (Linux). */
export function processesWith(mark: string): number[] {
  if (!existsSync('/proc/self/environ')) return []
  return readdirSync('/proc')
    .map(Number)
    .filter(pid => pid > 0 && `\0${environmentOf(pid)}\0`.includes(`\0${mark}\0`))
    .filter(pid => inspectProcess(pid, process.platform)?.ended === false)
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8')
  } catch {
    return ''
  }
}

/** Tries until something comes back; throws after `ms` saying what did not. */
export async function until<T>(
  fn: () => T | undefined | Promise<T | undefined>,
  ms: number,
  what: () => string,
): Promise<T> {
  const end = Date.now() + ms
  for (;;) {
    const value = await fn()
    if (value !== undefined) return value
    if (Date.now() > end) throw new Error(`not within ${ms / 1000} s: ${what()}`)
    await sleep(50)
  }
}

/** What has the daemons of this installation watched: their replies are held against the contract. */
function watching(): Record<string, string> {
  const { SVC_TEST_REPLIES: file, SVC_TEST_WATCHER: watcher } = process.env
  return file && watcher ? { SVC_TEST_REPLIES: file, NODE_OPTIONS: `--import ${watcher}` } : {}
}
