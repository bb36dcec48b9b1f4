import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SessionEvent } from '../../../schemas/sessions.js'
import { root as installed } from '../../../scripts/test-real/install.js'
import { type Reply, type StartedDaemon, startDaemon } from '../../../testing/index.js'
import { commandOf, type RealAgent } from '../../real/agents.js'

const here = path.dirname(fileURLToPath(import.meta.url))
const IDENTITY = ['-c', 'user.name=prover', '-c', 'user.email=prover@example.org']
/** How long anything may take on a busy machine. */
const PATIENCE_MS = 90_000
const LOOK_MS = 50

/** The turn of a prompt: what was told, and how many questions were answered with yes. */
export interface TurnTranscript {
  readonly events: readonly SessionEvent[]
  readonly end: SessionEvent
  readonly asked: number
  /** What the agent said and what its tools printed, for what it contains. */
  readonly text: string
}

/** A clone of this repository, a real agent with a model of its own, and a daemon. */
export class CodingWorld {
  private constructor(
    readonly real: RealAgent,
    readonly repository: string,
    readonly daemon: StartedDaemon,
    private readonly model: ChildProcess,
    private readonly base: string,
  ) {}

  /** @param folder of its own; everything is below it */
  static async open(real: RealAgent, folder: string): Promise<CodingWorld> {
    const repository = path.join(folder, 'work')
    const user = path.join(folder, 'user')
    fs.mkdirSync(user, { recursive: true })
    clone(repository)
    const script = path.join(here, '../../real/fake-model.mjs')
    const model = spawn(process.execPath, [script, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = await once(model.stdout, 'data')
    const base = /http:\/\/\S+/.exec(String(line))?.[0] ?? ''
    const command = commandOf(real, { root: installed, home: user, base })
    // What test:real proves with the default is only passed through here.
    const config = { session: { supervision: { frozen_after: '6s' } } }
    const home = path.join(folder, 'home')
    for (const [name, tools] of [
      ['coder', '[service__skill_list, svc__read, svc__edit, svc__execute]'],
      ['helper', '[]'],
    ] as const) {
      const head = `name: ${name}\npermissions: approve-reads\ntools: ${tools}\ncommand: '${command}'`
      fs.mkdirSync(path.join(home, 'agents', name), { recursive: true })
      fs.writeFileSync(path.join(home, 'agents', name, 'AGENT.md'), `---\n${head}\n---\nYou do what you are told.\n`)
    }
    const daemon = await startDaemon({ home, config, env: { HOME: user } }).catch(error => {
      model.kill()
      throw error
    })
    return new CodingWorld(real, repository, daemon, model, base)
  }

  async close(): Promise<void> {
    await this.daemon.stop()
    this.model.kill()
  }

  git(folder: string, ...args: string[]): string {
    return execFileSync('git', [...IDENTITY, ...args], { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
  }

  /** A session of an agent in the clone. */
  async session(agent: string, sandbox: string): Promise<string> {
    const body = { workspace_path: this.repository, agent_name: agent, sandbox }
    const { session } = await this.#expect(201, 'POST', '/api/sessions', body)
    return session.id
  }

  async row(id: string): Promise<Reply['body']> {
    return (await this.#expect(200, 'GET', `/api/sessions/${id}`)).session
  }

  async sessions(): Promise<readonly Reply['body'][]> {
    return (await this.#expect(200, 'GET', '/api/sessions')).sessions
  }

  async events(id: string, query = ''): Promise<readonly SessionEvent[]> {
    return (await this.#expect(200, 'GET', `${await this.#at(id)}/events?limit=1000${query}`)).events
  }

  /** Sends a prompt; what earlier ones scripted does not count any more. Returns the id of its turn. */
  async send(id: string, text: string): Promise<string> {
    const body = { text: `[[forget]]${text}` }
    return (await this.#expect([200, 202], 'POST', `${await this.#at(id)}/prompt`, body)).prompt.new_turn_id
  }

  /** A prompt to its end; every question is answered with yes. */
  async prompt(id: string, text: string): Promise<TurnTranscript> {
    return this.ended(id, await this.send(id, text))
  }

  /** Waits for the end of a turn, and answers its questions with yes. */
  async ended(id: string, turn: string): Promise<TurnTranscript> {
    const answered = new Set<unknown>()
    const at = await this.#at(id)
    return this.until(`the end of turn ${turn}`, async () => {
      const events = await this.events(id, `&turn_id=${turn}`)
      for (const { type, content } of events) {
        const { status, request_id } = Object(content)
        if (type !== 'permission' || status !== 'pending' || answered.has(request_id)) continue
        answered.add(request_id)
        await this.daemon.request('POST', `${at}/approve`, { request_id, turn_id: turn, decision: 'allow-once' })
      }
      const end = events.find(({ type }) => type === 'done' || type === 'error')
      // The result of a tool comes to its model, whether or not the agent tells its client too.
      return end && { events, end, asked: answered.size, text: `${textOf(events)}\n${await this.lastResult()}` }
    })
  }

  /** What a command of `svc` answers with --json. */
  async svc(...args: string[]): Promise<Reply['body']> {
    const { code, stdout, stderr } = await this.daemon.cli(...args, '--json')
    if (code !== 0) throw new Error(`svc ${args.join(' ')}: ${code}\n${stdout}${stderr}`)
    return JSON.parse(stdout)
  }

  /** The newest requests to the model, whole. */
  async requests(): Promise<readonly string[]> {
    return (await (await fetch(`${this.base}/__bodies`)).json()) as string[]
  }

  /** What the model was told last of the result of a tool; for a failure. */
  async lastResult(): Promise<string> {
    const log = (await (await fetch(`${this.base}/__log`)).json()) as { result?: string }[]
    return log.filter(({ result }) => result !== undefined).at(-1)?.result ?? 'none'
  }

  /** Asks until there is an answer. */
  async until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; ) {
      const answer = await ask()
      if (answer) return answer
      await new Promise(resolve => setTimeout(resolve, LOOK_MS))
    }
    throw new Error(`waited in vain for ${what}`)
  }

  async #at(id: string): Promise<string> {
    const { workspace_id } = await this.row(id)
    return `/api/workspaces/${workspace_id}/sessions/${id}`
  }

  async #expect(status: number | readonly number[], method: string, url: string, body?: unknown) {
    const reply = await this.daemon.request(method, url, body)
    if (![status].flat().includes(reply.status))
      throw new Error(`${method} ${url}: ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply.body
  }
}

/** Its words come in pieces, whose ends are anywhere. */
function textOf(events: readonly SessionEvent[]): string {
  const output = events.flatMap(({ type, content }) => (type === 'agent_message' ? [String(Object(content).text)] : []))
  const shown = events.filter(({ type }) => type !== 'user_message' && type !== 'agent_message')
  return `${output.join('')}\n${JSON.stringify(shown)}`
}

/** This repository, and in it a function with a fault and the test that finds it. */
function clone(repository: string): void {
  const git = (...args: string[]) => execFileSync('git', [...IDENTITY, ...args], { stdio: 'pipe' })
  git('clone', '-q', '--no-hardlinks', path.join(here, '../../..'), repository)
  const write = (file: string, text: string) => {
    fs.mkdirSync(path.join(repository, path.dirname(file)), { recursive: true })
    fs.writeFileSync(path.join(repository, file), text)
  }
  write('coding/sum.mjs', 'export const sum = (a, b) => a - b\n')
  write(
    'coding/sum.test.mjs',
    "import assert from 'node:assert'\nimport { sum } from './sum.mjs'\nassert.equal(sum(20, 3), 23)\nconsole.log('the sum is right')\n",
  )
  git('-C', repository, 'add', '-A')
  git('-C', repository, 'commit', '-qm', 'coding: a sum with a fault')
}
