import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { until } from '../../e2e/installed.js'
import type { Chance } from '../library/chance.js'

const PATIENCE_MS = 60_000
/** Records, each of which is written by a lane of its own, and lanes of prompts. */
const RECORDS = 4
const TALKS = 2
const SESSIONS = 3
/** Milliseconds between attempts while no daemon listens. */
const RETRY_MS = 10

// biome-ignore lint/suspicious/noExplicitAny: the body of any reply
type Body = any
type Reply = { readonly status: number; readonly body: Body }

/** The daemon under attack, whichever process it is by then. */
export interface LoadContext {
  readonly root: string
  /** File in which the agent writes one line `[session, method, text]` for each request that reaches it. */
  readonly ledger: string
  send(method: string, url: string, body?: unknown): Promise<Reply>
}

interface Prompt {
  readonly base: string
  readonly session: string
  readonly body: { readonly text: string; readonly idempotency_key: string; readonly message_id: string }
  /** Its turn, once it was answered. */
  turn?: string
}

/** Writes to a daemon that is killed meanwhile, and knows what was acknowledged. */
export class Load {
  /** Of each record the newest version that was acknowledged, and all contents that were sent. */
  readonly #records = new Map<string, { version: number; readonly sent: unknown[] }>()
  readonly #prompts: Prompt[] = []
  readonly #runs = new Set<string>()
  #workspace = ''
  #job = ''
  #count = 0
  #stopped = false

  constructor(private readonly context: LoadContext) {}

  /** How many writes were acknowledged, for people. */
  readonly acknowledged = { records: 0, prompts: 0, runs: 0 }

  /** Writes until {@link stop}; requests that a kill cut off stay unacknowledged. */
  async run(chance: Chance): Promise<void> {
    this.#stopped = false
    while (!this.#stopped) {
      try {
        if (this.#job === '') await this.#prepare()
        await Promise.all([
          ...Array.from({ length: RECORDS }, (_, index) => this.#writeRecords(`note-${index}`)),
          ...Array.from({ length: TALKS }, () => this.#prompt(chance)),
          this.#trigger(),
        ])
        return
      } catch (error) {
        if (!isCut(error)) throw error
        await sleep(RETRY_MS)
      }
    }
  }

  stop(): void {
    this.#stopped = true
  }

  /** A prompt or a run has reached its agent at least this far. */
  async reaches(method: string): Promise<void> {
    const before = this.#ledger().length
    while (
      !this.#stopped &&
      !this.#ledger()
        .slice(before)
        .some(([, other]) => other === method)
    )
      await sleep(5)
  }

  /** What of the acknowledged writes is lost, or was done twice. */
  async check(): Promise<string[]> {
    return [...(await this.#checkRecords()), ...(await this.#checkPrompts()), ...(await this.#checkRuns())]
  }

  async #prepare(): Promise<void> {
    this.#workspace = (await this.#ask('POST', '/api/workspaces/resolve', { path: this.context.root })).workspace.id
    const { jobs } = await this.#ask('GET', '/api/automation/jobs')
    const known = jobs.find(({ name }: Body) => name === 'kills')
    const made = {
      name: 'kills',
      agent_name: 'slow',
      prompt: 'say by-job',
      scope: 'workspace',
      workspace_id: this.#workspace,
      schedule: { mode: 'every', interval: '24h' },
      fire_limit: { max: 1000, window: '1h' },
    }
    this.#job = (known ?? (await this.#ask('POST', '/api/automation/jobs', made)).job).id
  }

  async #writeRecords(id: string): Promise<void> {
    while (!this.#stopped) {
      const record = this.#records.get(id) ?? { version: 0, sent: [] }
      this.#records.set(id, record)
      const spec = { count: ++this.#count }
      record.sent.push(spec)
      const body = { scope: { kind: 'global' }, spec, expected_version: record.version }
      const reply = await this.context.send('PUT', `/api/resources/acme.note/${id}`, body)
      // Cut off before, and written nevertheless.
      if (reply.status === 409)
        record.version = (await this.#ask('GET', `/api/resources/acme.note/${id}`)).record.version
      else if (reply.status >= 300) throw new Error(`PUT ${id}: ${reply.status} ${JSON.stringify(reply.body)}`)
      else {
        record.version = reply.body.record.version
        this.acknowledged.records++
      }
    }
  }

  async #prompt(chance: Chance): Promise<void> {
    for (let session = 0; session < SESSIONS && !this.#stopped; session++) {
      const made = await this.#ask('POST', '/api/sessions', { workspace: this.#workspace, agent_name: 'slow' })
      const { id } = made.session
      const base = `/api/workspaces/${this.#workspace}/sessions/${id}`
      for (let index = 0; index <= chance.int(3) && !this.#stopped; index++) {
        const key = `key-${++this.#count}`
        const body = { text: `say ${key}\nsleep 5`, idempotency_key: key, message_id: `message-${this.#count}` }
        const prompt: Prompt = { base, session: id, body }
        this.#prompts.push(prompt)
        prompt.turn = (await this.#ask('POST', `${base}/prompt`, body)).prompt.new_turn_id
        this.acknowledged.prompts++
      }
      await sleep(20)
    }
  }

  async #trigger(): Promise<void> {
    for (let run = 0; run < 2 && !this.#stopped; run++) {
      const reply = await this.context.send('POST', `/api/automation/jobs/${this.#job}/trigger`)
      if (reply.status < 300) {
        this.#runs.add(reply.body.run.id)
        this.acknowledged.runs++
      } else if (reply.status !== 409) throw new Error(`trigger: ${reply.status} ${JSON.stringify(reply.body)}`)
      await sleep(50)
    }
  }

  async #checkRecords(): Promise<string[]> {
    const faults: string[] = []
    for (const [id, known] of this.#records) {
      const reply = await this.context.send('GET', `/api/resources/acme.note/${id}`)
      const { version = 0, spec } = reply.body?.record ?? {}
      if (version < known.version) faults.push(`${id} was acknowledged as version ${known.version} and is ${version}`)
      else if (version > 0 && !known.sent.some(sent => isDeepStrictEqual(sent, spec))) {
        faults.push(`${id} version ${version} is ${JSON.stringify(spec)}, not what was sent`)
      }
      known.version = version
    }
    return faults
  }

  /** Each prompt that was answered is in the history or waits, has its turn, and reached the agent once at most. */
  async #checkPrompts(): Promise<string[]> {
    const faults: string[] = []
    const reached = this.#ledger().flatMap(([, method, text]) => (method === 'session/prompt' ? [text] : []))
    for (const { base, body, turn } of this.#prompts.splice(0)) {
      const times = reached.filter(text => text === body.text).length
      if (times > 1) faults.push(`${body.idempotency_key} reached the agent ${times} times`)
      if (turn === undefined) continue
      const { events } = await this.#ask('GET', `${base}/events?turn_id=${turn}&limit=1000`)
      const reports = events.filter(({ type }: Body) => type === 'user_message').length
      const waits = JSON.stringify(await this.#ask('GET', `${base}/prompt/queue`)).includes(`"${body.message_id}"`)
      if (reports + Number(waits) !== 1) {
        faults.push(
          `${body.idempotency_key} was answered; it is ${reports} times in the history, it ${waits ? 'waits' : 'does not wait'}`,
        )
      }
      const again = await this.context.send('POST', `${base}/prompt`, body)
      const isKnown = again.status === 202 && again.body.prompt.new_turn_id === turn
      if (!isKnown && !(again.status === 409 && reports === 1)) {
        faults.push(`${body.idempotency_key} again: ${again.status} ${JSON.stringify(again.body)}`)
      }
    }
    return faults
  }

  /** Each run that was answered is there and ends, and its session was prompted once at most. */
  async #checkRuns(): Promise<string[]> {
    const faults: string[] = []
    const prompted = this.#ledger().flatMap(([session, method]) => (method === 'session/prompt' ? [session] : []))
    for (const id of this.#runs) {
      const run = await until(
        async () => {
          const { status, body } = await this.context.send('GET', `/api/automation/runs/${id}`)
          if (status !== 200) return { error: `${status} ${JSON.stringify(body)}` } as Body
          return body.run.ended_at === null ? undefined : body.run
        },
        PATIENCE_MS,
        () => `the end of ${id}`,
      )
      if (run.id !== id) faults.push(`${id} was answered and is gone: ${run.error}`)
      const times = prompted.filter(session => session === run.session_id).length
      if (times > 1) faults.push(`${id} ran ${times} times in ${run.session_id}`)
      if (run.status === 'completed' && times !== 1) faults.push(`${id} is completed and ran ${times} times`)
    }
    this.#runs.clear()
    return faults
  }

  #ledger(): [session: string, method: string, text: string][] {
    const lines = readFileSync(this.context.ledger, 'utf8').split('\n').slice(0, -1)
    return lines.map(line => JSON.parse(line))
  }

  async #ask(method: string, url: string, body?: unknown): Promise<Body> {
    const reply = await this.context.send(method, url, body)
    if (reply.status >= 300) throw new Error(`${method} ${url}: ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply.body
  }
}

/** The daemon was not there, not there yet, or went away. */
function isCut(error: unknown): boolean {
  const { code, message = '' } = error as { code?: string; message?: string }
  return /^E(?:CONNREFUSED|CONNRESET|NOENT|PIPE)$/.test(code ?? '') || /socket hang up|aborted|: 503 /.test(message)
}
