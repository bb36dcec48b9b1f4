import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../e2e/installed.js'
import type { Chance } from '../library/chance.js'

const PATIENCE_MS = 30_000

/** When a daemon is killed: at a random moment, or just after one of these. */
const POINTS = ['moment', 'answered', 'initialize', 'session/new', 'session/prompt'] as const

// biome-ignore lint/suspicious/noExplicitAny: the body of any reply
type Body = any

/** What reaches the daemon and its agent. */
export interface PromptsContext {
  /** File in which the agent writes one line `[session, method, text]` for each request that reaches it. */
  readonly ledger: string
  readonly workspace: string
  send(method: string, url: string, body?: unknown): Promise<{ readonly status: number; readonly body: Body }>
}

interface Sent {
  readonly body: { readonly text: string; readonly idempotency_key: string; readonly message_id: string }
  /** The answer; undefined when the daemon died first. */
  receipt?: { readonly new_turn_id: string; readonly status: string }
}

/** Prompts to a new session whose agent starts slowly, and what each of them was answered. */
export class AcknowledgedPrompts {
  /** Its id; undefined until the session was made. */
  session: string | undefined
  /** Text of the prompt that came with the session, when that was answered. */
  #first: string | undefined
  readonly #sent: Sent[] = []

  constructor(private readonly context: PromptsContext) {}

  /** Sends prompts one after the other; resolves at the point where the daemon is to be killed. */
  async begin(chance: Chance): Promise<void> {
    const point = chance.of(POINTS)
    const count = 1 + chance.int(3)
    const withSession = chance.int(3) === 0
    let answered: () => void = () => {}
    const firstAnswer = new Promise<void>(resolve => {
      answered = resolve
    })
    const mark = `${chance.int(1_000_000)}`
    const all = async () => {
      await this.#create(withSession ? `say with-session-${mark}` : undefined)
      if (withSession) answered()
      for (let index = 0; index < count; index++) {
        const key = `key-${index}`
        const body = { text: `say ${mark}-${index}\nsleep 5`, idempotency_key: key, message_id: `message-${index}` }
        const sent: Sent = { body }
        this.#sent.push(sent)
        const reply = await this.context.send('POST', `${this.#base}/prompt`, body)
        if (reply.status >= 300) throw new Error(`a prompt: ${reply.status} ${JSON.stringify(reply.body)}`)
        sent.receipt = reply.body.prompt
        answered()
      }
    }
    // The kill cuts it off.
    all().catch(() => {})
    await Promise.race([this.#reaches(point, firstAnswer), sleep(3000, undefined, { ref: false })])
    await sleep(point === 'moment' ? chance.int(500) : chance.int(6))
  }

  /** What is wrong with the prompts under the daemon that was started then; and where the kill hit, for people. */
  async check(): Promise<{ faults: string[]; hit: string }> {
    if (this.session === undefined) return { faults: [], hit: 'start: before the session' }
    const faults: string[] = []
    const delivered = this.#delivered()
    const before = await this.#events()
    const { body: waiting } = await this.context.send('GET', `${this.#base}/prompt/queue`)
    const queued = new Set(JSON.stringify(waiting).match(/message-\d/g))
    if (this.#first !== undefined && messages(before, this.#first).length !== 1) {
      faults.push(`the prompt of the new session is ${messages(before, this.#first).length} times in the history`)
    }
    const outcomes: string[] = []
    for (const sent of this.#sent) {
      const { body, receipt } = sent
      const inHistory = messages(before, body.text)
      const isQueued = queued.has(body.message_id)
      const times = delivered.filter(text => text === body.text).length
      if (times > 1) faults.push(`${body.message_id} reached the agent ${times} times`)
      if (receipt && inHistory.length === 0 && !isQueued) faults.push(`${body.message_id} was answered and is gone`)
      if (inHistory.length > 1) faults.push(`${body.message_id} is ${inHistory.length} times in the history`)
      const again = await this.context.send('POST', `${this.#base}/prompt`, body)
      outcomes.push(outcomeOf(again, receipt))
      if (again.status === 409) {
        if (inHistory.length === 0) faults.push(`${body.message_id}: 409 with nothing in the history`)
      } else if (again.status >= 300) {
        faults.push(`${body.message_id} again: ${again.status} ${JSON.stringify(again.body)}`)
      } else {
        const { new_turn_id, message_id, status } = again.body.prompt
        if (receipt && new_turn_id !== receipt.new_turn_id) faults.push(`${body.message_id} is another turn now`)
        if (message_id !== body.message_id) faults.push(`${body.message_id} is ${message_id} now`)
        if (status === 'interrupted' && times > 0) faults.push(`${body.message_id} is said not to have been sent`)
        // Not answered before: whether it is new now or was taken then, it runs once.
        sent.receipt ??= again.body.prompt
      }
    }
    await this.#ends(faults)
    return { faults, hit: `start: ${[this.#first && 'with session', ...outcomes].filter(Boolean).join(', ')}` }
  }

  /** Every turn has one end once the queue is empty, and no text reached the agent twice. */
  async #ends(faults: string[]): Promise<void> {
    const last = await this.context.send('POST', `${this.#base}/prompt`, { text: 'say last' })
    if (last.status >= 300) {
      faults.push(`the session does not go on: ${last.status} ${JSON.stringify(last.body)}`)
      return
    }
    const turn = last.body.prompt.new_turn_id
    await until(
      async () => (await this.#events()).find(event => event.turn_id === turn && isEnd(event)),
      PATIENCE_MS,
      () => 'the last turn',
    )
    const events = await this.#events()
    const delivered = this.#delivered()
    for (const { body, receipt } of this.#sent) {
      const ends = events.filter(event => event.turn_id === receipt?.new_turn_id && isEnd(event))
      if (receipt && ends.length !== 1) faults.push(`the turn of ${body.message_id} has ${ends.length} ends`)
      const times = delivered.filter(text => text === body.text).length
      if (times > 1) faults.push(`${body.message_id} reached the agent ${times} times in the end`)
      const isDone = ends.some(({ type }) => type === 'done')
      if (isDone && times !== 1) faults.push(`${body.message_id} is done and reached the agent ${times} times`)
    }
    const { entries } = (await this.context.send('GET', `${this.#base}/transcript?limit=200`)).body
    for (const { body, receipt } of this.#sent) {
      if (receipt && !JSON.stringify(entries).includes(JSON.stringify(body.text).slice(1, -1))) {
        faults.push(`${body.message_id} is not in the transcript`)
      }
    }
  }

  async #create(prompt: string | undefined): Promise<void> {
    const { send, workspace } = this.context
    const { body } = await send('POST', '/api/sessions', { workspace, agent_name: 'slow', ...(prompt && { prompt }) })
    this.session = body.session.id
    this.#first = prompt
  }

  async #reaches(point: (typeof POINTS)[number], answered: Promise<void>): Promise<void> {
    if (point === 'moment') return
    if (point === 'answered') return answered
    const seen = () => this.#ledger().some(([session, method]) => session === this.session && method === point)
    while (!seen()) await sleep(2, undefined, { ref: false })
  }

  #delivered(): string[] {
    return this.#ledger().flatMap(([id, method, text]) =>
      id === this.session && method === 'session/prompt' ? [text] : [],
    )
  }

  #ledger(): [session: string, method: string, text: string][] {
    const lines = readFileSync(this.context.ledger, 'utf8').split('\n').slice(0, -1)
    return lines.map(line => JSON.parse(line))
  }

  async #events(): Promise<Body[]> {
    return (await this.context.send('GET', `${this.#base}/events?limit=1000`)).body.events
  }

  get #base(): string {
    return `/api/workspaces/${this.context.workspace}/sessions/${this.session}`
  }
}

const messages = (events: readonly Body[], text: string) =>
  events.filter(({ type, content }) => type === 'user_message' && content.text === text)
const isEnd = ({ type }: Body) => type === 'done' || type === 'error'

function outcomeOf({ status, body }: { status: number; body: Body }, receipt: Sent['receipt']): string {
  const was = receipt ? 'answered' : 'not answered'
  return `${was} ${status === 409 ? 'unknown' : status === 200 ? 'new' : body?.prompt?.status}`
}
