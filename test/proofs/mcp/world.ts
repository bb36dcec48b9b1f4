import { type ChildProcess, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { Installed, type Ran, until } from '../../e2e/installed.js'

/** How long anything may take on a busy machine. */
const PATIENCE_MS = 90_000
const require = createRequire(import.meta.url)
const programOf = (name: string) => path.join(path.dirname(require.resolve(`${name}/package.json`)), 'dist/index.js')

/** The official servers, which are packages of this repository. */
export const EVERYTHING = programOf('@modelcontextprotocol/server-everything')
export const FILESYSTEM = programOf('@modelcontextprotocol/server-filesystem')
/** The program of the command line; its first argument follows. */
export const SVC = fileURLToPath(new URL('../../../dist/svc.cjs', import.meta.url))
const TERMINAL = fileURLToPath(new URL('../../fixtures/terminal.py', import.meta.url))

// biome-ignore lint/suspicious/noExplicitAny: as it is on the wire
export type Wire = any

/** One thing that is tried; what it resolves with is printed. */
export interface Step {
  readonly what: string
  run(): Promise<string>
}

/** A daemon on an empty home, as a person has it after the installation. */
export class World extends Installed {
  /** A request of the operator that has to succeed. */
  async ask(method: string, url: string, body?: unknown): Promise<Wire> {
    const { status, text } = await this.request('socket', method, url, body)
    if (status >= 300) throw new Error(`${method} ${url}: ${status} ${text}${this.logTail()}`)
    return text === '' ? undefined : JSON.parse(text)
  }

  /** Asks until there is an answer. */
  until<T>(what: string, ask: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> {
    return until(
      async () => (await ask()) || undefined,
      PATIENCE_MS,
      () => what,
    )
  }

  /** A command on a terminal of its own. */
  terminal(args: readonly string[], env: Readonly<Record<string, string>> = {}): Terminal {
    const all = { ...this.env, TERM: 'xterm', ...env }
    return new Terminal(spawn('python3', [TERMINAL, process.execPath, SVC, ...args], { cwd: this.folder, env: all }))
  }

  /** Runs another program to its end. */
  async program(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
    const [command = '', ...args] = argv
    const child = spawn(command, args, {
      cwd: this.folder,
      env: { ...this.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const out = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', text => {
        out[name] += text
      })
    const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
    const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
    clearTimeout(timer)
    return { code, ...out }
  }
}

/** What a person sees and types. */
export class Terminal {
  text = ''
  readonly ended: Promise<number | null>
  #seen = 0

  constructor(private readonly child: ChildProcess) {
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', text => {
        this.text += text
      })
    this.ended = new Promise(resolve => child.once('close', resolve))
  }

  /** Waits for a text behind what was waited for before; returns what was found. */
  async shows(what: RegExp): Promise<RegExpExecArray> {
    const found = await until(
      () => what.exec(this.text.slice(this.#seen)) ?? undefined,
      PATIENCE_MS,
      () => `${what} on the terminal:\n${this.text}`,
    )
    this.#seen += found.index + found[0].length
    return found
  }

  type(text: string): void {
    this.child.stdin?.write(text)
  }

  kill(): void {
    this.child.kill()
  }
}
