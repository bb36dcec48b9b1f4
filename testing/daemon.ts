import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { exchange, readText } from '../client/exchange.js'
import { readManifest } from '../plugins/delivery/extensions/api.js'
import type { Extension } from '../schemas/extensions.js'
import type { Reply } from './extension.js'
import { EventReader, type StreamOptions } from './stream.js'

/** Default of {@link DaemonOptions.patienceMs}; far more than a daemon needs, because the machine may be busy. */
const PATIENCE_MS = 60_000
const LOOK_MS = 25
/** Characters of output that are kept for messages. */
const KEPT = 64 * 1024
/** Signals that do not end a process. */
const STAYS: readonly string[] = ['SIGSTOP', 'SIGCONT']

export interface DaemonOptions {
  /** Absolute; this folder is kept. Default: a temporary folder, which is removed. */
  readonly home?: string
  /** Content of `config.json`, as text or as a value. In a value `http.port` defaults to 0. */
  readonly config?: string | Readonly<Record<string, unknown>>
  /** Environment variables in addition to PATH, HOME and SVC_HOME. */
  readonly env?: Readonly<Record<string, string>>
  /** Folders of extensions that are linked into the home before the start; `startDaemon` resolves when they run. */
  readonly extensions?: readonly string[]
  /** A command that starts the daemon and becomes it: `ip netns exec host-1` gives it its own network. */
  readonly through?: readonly string[]
  /** Milliseconds for the daemon to become ready, and to end; default 60,000. Raise it for a very busy machine. */
  readonly patienceMs?: number
}

/** Output and exit code of an `svc` command; the code is null after a signal. */
export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A daemon in a process of its own, for tests that an in-process kernel cannot do: `kill -9`, a restart, the command line. */
export class StartedDaemon {
  #child: ChildProcess | undefined
  #output = ''
  /** The last daemon was killed. Its child processes may still run, and only the next daemon can end them. */
  #wasKilled = false
  readonly #extensions: string[] = []
  readonly #streams = new Set<EventReader>()
  readonly #removeAtExit = () => {
    this.#child?.kill('SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
  }

  private constructor(
    readonly home: string,
    /** A temporary folder with the user's folder and, unless it was given, the home. */
    private readonly folder: string,
    private readonly env: Readonly<Record<string, string>>,
    private readonly through: readonly string[],
    private readonly patienceMs: number,
  ) {
    process.once('exit', this.#removeAtExit)
  }

  static async start(options: DaemonOptions = {}): Promise<StartedDaemon> {
    const folder = await realpath(await mkdtemp(path.join(os.tmpdir(), 'svc-daemon-')))
    const home = options.home ?? path.join(folder, 'home')
    const user = path.join(folder, 'user')
    const env = { PATH: process.env.PATH ?? '', HOME: user, SVC_HOME: home, ...options.env }
    const daemon = new StartedDaemon(home, folder, env, options.through ?? [], options.patienceMs ?? PATIENCE_MS)
    try {
      for (const each of [user, path.join(home, 'extensions')]) await mkdir(each, { recursive: true, mode: 0o700 })
      if (options.config !== undefined || options.home === undefined)
        await writeFile(path.join(home, 'config.json'), configText(options.config))
      for (const extension of options.extensions ?? []) {
        const { name } = await readManifest(extension)
        await symlink(path.resolve(extension), path.join(home, 'extensions', name), 'dir')
        daemon.#extensions.push(name)
      }
      await daemon.#start()
      await daemon.#untilExtensionsRun()
      return daemon
    } catch (error) {
      await daemon.stop().catch(() => {})
      throw error
    }
  }

  /** Pid of the current process. @throws Error when none runs */
  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error('the daemon does not run')
    return this.#child.pid
  }

  /** The end of its output: the log and errors. */
  get output(): string {
    return this.#output
  }

  /** The operator token, for requests over TCP: `Authorization: Bearer <token>`. */
  get token(): string {
    return readFileSync(path.join(this.home, 'operator.token'), 'utf8').trim()
  }

  /** A request over the Unix socket. @throws Error of the connection when the daemon does not answer */
  readonly request = async (method: string, url: string, body?: unknown): Promise<Reply> => {
    const response = await exchange({ socket: this.#socket }, { method, path: url, body })
    const text = await readText(response)
    const isJson = text !== '' && /\bjson\b/.test(response.headers['content-type'] ?? '')
    const { statusCode: status = 0, headers } = response
    return { status, headers, body: isJson ? JSON.parse(text) : text === '' ? undefined : text }
  }

  /** Opens a stream of server-sent events; it is closed when the daemon is stopped. */
  readonly stream = async (url: string, options: StreamOptions = {}): Promise<EventReader> => {
    const reader = await EventReader.open({ socket: this.#socket }, url, options)
    this.#streams.add(reader)
    return reader
  }

  /** Runs `svc` with these arguments on this home; a failure is not an error. */
  readonly cli = (...args: string[]): Promise<Ran> => {
    const child = spawn(process.execPath, [program(), ...args], {
      cwd: this.folder,
      env: this.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const out = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', text => {
        out[name] += text
      })
    }
    return new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', code => resolve({ code, ...out }))
    })
  }

  /** Sends a signal, and waits for the end of the process if the signal ends it. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (!child) throw new Error('the daemon does not run')
    child.kill(signal)
    if (!STAYS.includes(signal)) await exitOf(child, this.patienceMs)
  }

  /** Stops a running daemon and starts it again on the same home. */
  async restart(): Promise<void> {
    await this.#end()
    await this.#start()
    await this.#untilExtensionsRun()
  }

  /**
   * Ends the daemon and its child processes, and removes the temporary folder. After a `kill` it is started once more, because only
   * a daemon of this home knows the processes that were left.
   */
  async stop(): Promise<void> {
    for (const stream of this.#streams) stream.close()
    try {
      if (this.#wasKilled) await this.#start().catch(() => {})
      await this.#end()
    } finally {
      this.#child?.kill('SIGKILL')
      process.removeListener('exit', this.#removeAtExit)
      await rm(this.folder, { recursive: true, force: true })
    }
  }

  get #socket(): string {
    return path.join(this.home, 'daemon.sock')
  }

  async #start(): Promise<void> {
    this.#output = ''
    const [first, ...more] = [...this.through, process.execPath, program(), 'daemon', 'start', '--foreground']
    const child = spawn(first as string, more, {
      cwd: this.home,
      env: this.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', text => {
        this.#output = (this.#output + text).slice(-KEPT)
      })
    }
    child.once('exit', (_code, signal) => {
      if (this.#child === child) this.#child = undefined
      this.#wasKilled = signal !== null
    })
    const end = performance.now() + this.patienceMs
    while (!(await this.#answers())) {
      if (this.#child !== child) throw new Error(`the daemon ended before it was ready:\n${this.#output}`)
      if (performance.now() > end)
        throw new Error(`the daemon is not ready after ${this.patienceMs / 1000} s:\n${this.#output}`)
      await new Promise(resolve => setTimeout(resolve, LOOK_MS))
    }
    // This daemon has ended the processes of its predecessor.
    this.#wasKilled = false
  }

  async #answers(): Promise<boolean> {
    const reply = await this.request('GET', '/api/status/identity').catch(() => undefined)
    // Another process may serve this home: then the pid differs.
    return reply?.status === 200 && reply.body.daemon.pid === this.#child?.pid
  }

  /** A daemon is ready before its extensions are loaded. */
  async #untilExtensionsRun(): Promise<void> {
    const end = performance.now() + this.patienceMs
    for (const name of this.#extensions) {
      for (;;) {
        const { status, body } = await this.request('GET', `/api/extensions/${name}`)
        const { state, last_error } = (status === 200 ? body.extension : {}) as Partial<Extension>
        if (state === 'active' || state === 'disabled') break
        if (state === 'error' || performance.now() > end)
          throw new Error(`${name} does not run: ${last_error ?? state ?? body.error}`)
        await new Promise(resolve => setTimeout(resolve, LOOK_MS))
      }
    }
    // The command line reads extension commands from this file, which is written when all extensions are loaded.
    const commands = path.join(this.home, 'cache', 'commands.json')
    while (this.#extensions.length > 0 && !existsSync(commands) && performance.now() < end)
      await new Promise(resolve => setTimeout(resolve, LOOK_MS))
  }

  async #end(): Promise<void> {
    const child = this.#child
    if (!child) return
    child.kill('SIGCONT')
    child.kill('SIGTERM')
    await exitOf(child, this.patienceMs)
  }
}

/** Waits for the end of a process. A process that does not end in time is killed, which is an error. */
async function exitOf(child: ChildProcess, patienceMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>(resolve => {
    timer = setTimeout(() => resolve('late'), patienceMs)
  })
  const exit = new Promise(resolve => child.once('exit', resolve))
  const how = await Promise.race([exit, late]).finally(() => clearTimeout(timer))
  if (how !== 'late') return
  child.kill('SIGKILL')
  throw new Error(`the daemon (pid ${child.pid}) did not end within ${patienceMs / 1000} s`)
}

function configText(config: DaemonOptions['config'] = {}): string {
  if (typeof config === 'string') return config
  return JSON.stringify({ ...config, http: { port: 0, ...(config.http as object | undefined) } })
}

/** The `svc` program of this package. */
function program(): string {
  let folder = path.dirname(fileURLToPath(import.meta.url))
  while (!existsSync(path.join(folder, 'package.json')) && path.dirname(folder) !== folder)
    folder = path.dirname(folder)
  const file = path.join(folder, 'dist', 'bin', 'svc')
  if (!existsSync(file)) throw new Error(`${file} is missing; npm run build makes it`)
  return file
}
