import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Installed, type Running, until } from '../../e2e/installed.js'
import { type Chance, chance } from '../library/chance.js'
import { Platform } from './platform.js'

const AGENT = fileURLToPath(new URL('../../fixtures/acp-agent.mjs', import.meta.url))
const PATIENCE_MS = 180_000
/** Questions of one round, and rooms that they come from: each room has a session. */
const QUESTIONS = 6
const ROOMS = 3

/** A message that ends a question without its answer: on a slow machine more questions come than a session queues. */
const REFUSED = /^(The agent failed|This could not be passed to an agent)/

/** How a platform is that the adapter serves. */
export interface Kind {
  readonly name: string
  readonly settles: boolean
  readonly edits: boolean
}

interface Question {
  readonly key: string
  readonly room: string
  readonly words: string
}

/** A daemon with a bridge that is killed again and again while messages come and go. */
export class Life {
  readonly #at: Installed
  readonly #platform: Platform
  readonly #questions: Question[] = []
  #daemon: Running | undefined

  constructor(
    private readonly kind: Kind,
    seed: number,
  ) {
    this.#at = new Installed({ http: { port: 0 } })
    this.#platform = new Platform(chance(seed, kind.name, 'platform'))
  }

  async begin(): Promise<void> {
    const { home, folder } = this.#at
    const root = path.join(folder, 'work')
    const agent = path.join(home, 'agents', 'scripted')
    const extension = path.join(home, 'extensions', this.kind.name)
    for (const each of [root, agent, extension]) mkdirSync(each, { recursive: true })
    const command = `${process.execPath} ${AGENT} --load`
    writeFileSync(path.join(agent, 'AGENT.md'), `---\nname: scripted\ncommand: '${command}'\n---\nDo as told.\n`)
    const port = await this.#platform.listen()
    copyFileSync(fileURLToPath(new URL('./adapter.mjs', import.meta.url)), path.join(extension, 'adapter.mjs'))
    writeFileSync(path.join(extension, 'extension.toml'), manifestOf(this.kind, port))
    await this.#start()
    const { workspace } = await this.#ask('POST', '/api/workspaces/resolve', { path: root })
    await this.#ask('PATCH', `/api/workspaces/${workspace.id}`, { default_agent: 'scripted' })
    const spec = {
      ...{ display_name: 'Proof', platform: this.kind.name, extension_name: this.kind.name, enabled: true },
      routing_policy: { include_group: true },
    }
    const scope = { kind: 'workspace', id: workspace.id }
    await this.#ask('PUT', '/api/resources/bridge.instance/b1', { scope, spec, expected_version: 0 })
  }

  async end(): Promise<void> {
    await this.#platform.close()
    await this.#at.remove()
  }

  /** People write, the daemon is killed at a random moment, and started again. */
  async round(luck: Chance): Promise<void> {
    for (let n = 0; n < QUESTIONS; n++) {
      const key = `q${this.#questions.length + 1}`
      const group = `g${luck.int(ROOMS)}`
      const words = `answer ${key} ${'word '.repeat(luck.int(20))}end`
      const text = `say begin ${key}\nsleep ${luck.int(400)}\nsay ${words}`
      this.#questions.push({ key, room: `${group}/${key}`, words })
      const sender = { id: 'ada', authenticated: true }
      const event = { family: 'message' as const, sender, addressed: true, group_id: group, thread_id: key, text }
      this.#platform.say({ idempotency_key: key, message_id: `in-${key}`, ...event })
    }
    await sleep(200 + luck.int(1800))
    this.#daemon?.child.kill('SIGKILL')
    await this.#daemon?.ended
    await this.#start()
  }

  /** What is wrong when all has come to its end. */
  async check(): Promise<string[]> {
    const states = ['prepared', 'queued', 'send_attempt_started', 'unknown_after_send']
    await until(
      async () => {
        if (this.#platform.unseen > 0) return undefined
        if (this.#questions.some(({ room }) => !this.#isEnded(room))) {
          const listed = await this.#deliveries('failed')
          if (this.kind.settles || this.#questions.some(one => !this.#isEnded(one.room) && !listed.has(one.key)))
            return undefined
        }
        for (const state of states) if ((await this.#deliveries(state)).size > 0) return undefined
        return true
      },
      PATIENCE_MS,
      () =>
        `an end of all: ${this.#questions.filter(({ room }) => !this.#isEnded(room)).map(({ key }) => key)}${this.#at.logTail()}`,
    )
    const faults: string[] = []
    const failed = await this.#deliveries('failed')
    if (this.kind.settles && failed.size > 0) faults.push(`listed although the platform can be asked: ${[...failed]}`)
    for (const { key, room } of this.#questions) {
      const texts = this.#platform.room(room).map(({ text }) => text)
      const answers = texts.filter(text => text.includes(`answer ${key} `) || REFUSED.test(text))
      const twice = texts.filter((text, at) => texts.indexOf(text) !== at)
      if (answers.length > 1) faults.push(`${key} was answered ${answers.length} times: ${JSON.stringify(texts)}`)
      if (twice.length > 0) faults.push(`${key} was told twice: ${JSON.stringify(texts)}`)
      if (answers.length === 0 && !failed.has(key)) faults.push(`${key} is lost: ${JSON.stringify(texts)}`)
    }
    const nonces = this.#platform.messages.map(({ nonce }) => nonce)
    if (new Set(nonces).size < nonces.length) faults.push('a message was made twice')
    return faults
  }

  get counts(): string {
    return `${this.#questions.length} questions, ${this.#platform.messages.length} messages`
  }

  #isEnded(room: string): boolean {
    return this.#platform.room(room).some(({ text }) => / end$/.test(text) || REFUSED.test(text))
  }

  /** The questions whose messages are in a state. */
  async #deliveries(state: string): Promise<ReadonlySet<string>> {
    const { deliveries } = await this.#ask('GET', `/api/bridges/b1/deliveries?state=${state}&limit=200`)
    return new Set(deliveries.map(({ target }: { target: string }) => /q\d+$/.exec(target)?.[0] ?? target))
  }

  async #start(): Promise<void> {
    this.#daemon = this.#at.start(['daemon', 'start', '--foreground'])
    await this.#daemon.shows(/daemon is ready/, PATIENCE_MS)
  }

  // biome-ignore lint/suspicious/noExplicitAny: the body of any reply
  async #ask(method: string, url: string, body?: unknown): Promise<any> {
    const { status, text } = await this.#at.request('socket', method, url, body)
    if (status >= 300) throw new Error(`${method} ${url}: ${status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
}

const manifestOf = ({ name, settles, edits }: Kind, port: number): string => `name = "${name}"
version = "1.0.0"
[capabilities]
provides = ["bridge.adapter"]
[permissions]
requires = ["bridges/instances/report_state", "bridges/messages/ingest"]
[subprocess]
command = "node"
args = ["adapter.mjs", "${port}"]
[bridge]
platform = "${name}"
display_name = "Proof"
can_settle = ${settles}
edits = ${edits}
authenticates_senders = true
`
