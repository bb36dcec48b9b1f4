import type { SessionEvent } from '../../../schemas/sessions.js'
import { type Decision, optionFor, type PermissionOption } from '../requests/permission-rules.js'
import { contentOf } from './event-lines.js'
import type { TaskContext } from './task-context.js'

/** Milliseconds after a question came up in which a line was typed before anybody can have read it. */
const TOO_SOON_MS = 250

/** Columns that the answers take when they are spelled out. */
const WIDE = 80

interface Answer {
  readonly keys: readonly string[]
  readonly shown: string
  /** For a narrow terminal. */
  readonly short: string
  readonly decision: Decision
}

const ANSWERS: readonly Answer[] = [
  { keys: ['y', 'yes'], shown: '[y] once', short: '[y]es', decision: 'allow-once' },
  { keys: ['a', 'always'], shown: '[a] for this session', short: '[a]lways', decision: 'allow-always' },
  { keys: ['n', 'no'], shown: '[n] no', short: '[n]o', decision: 'reject-once' },
  { keys: ['v', 'never'], shown: '[v] never', short: 'ne[v]er', decision: 'reject-always' },
]

interface Question {
  readonly id: string
  readonly turnId: string
  readonly options: readonly PermissionOption[]
}

/** Where a question is put, and how long somebody has had to read it. */
export interface QuestionPlace {
  /** Shows the answers that there are; undefined: nothing is asked any more. */
  ask(prompt: string | undefined): void
  /** Milliseconds of a clock that only goes forward. */
  now(): number
}

/** What an agent asks, put to whoever sits at the terminal: one question at a time, and never a line for the wrong one. */
export class Questions {
  readonly #waiting = new Map<string, Question>()
  #asked: Question | undefined
  #askedAt = 0

  /** @param place undefined: nobody is there, so what is asked is rejected at once */
  constructor(
    private readonly context: Pick<TaskContext, 'client' | 'out'>,
    private readonly place: QuestionPlace | undefined,
    private readonly base: string,
  ) {}

  /** Questions that were rejected because nobody was there to answer. */
  denied = 0

  /** A line that is typed now is an answer. */
  get isAsking(): boolean {
    return this.#asked !== undefined
  }

  /** Takes in an event that was shown. Asks only what still waits: of the past nothing is asked (`isLive` false). */
  take(event: SessionEvent, isLive: boolean): void {
    if (event.type === 'permission') {
      const { request_id, status, options } = contentOf(event)
      const id = String(request_id)
      if (status !== 'pending') this.#waiting.delete(id)
      else this.#waiting.set(id, { id, turnId: event.turn_id, options: optionsOf(options) })
    }
    const [first] = this.#waiting.values()
    if (isLive && first !== this.#asked) this.#ask()
  }

  /** Answers the question that is asked; what cannot be understood is asked again. */
  async answer(line: string): Promise<void> {
    const question = this.#asked
    if (!question || !this.place) return
    const word = line.trim().toLowerCase()
    const answer = offered(question).find(({ keys }) => keys.includes(word))
    if (!answer || this.place.now() - this.#askedAt < TOO_SOON_MS) {
      this.#ask()
      return
    }
    await this.#send(question, answer.decision)
  }

  #ask(): void {
    const [question] = this.#waiting.values()
    this.#asked = question
    if (!this.place) {
      if (question) this.#deny(question)
      return
    }
    this.#askedAt = this.place.now()
    if (!question) {
      this.place.ask(undefined)
      return
    }
    const more = this.#waiting.size > 1 ? ` (${this.#waiting.size - 1} more)` : ''
    const isNarrow = (this.context.out.width ?? WIDE) < WIDE
    const choices = offered(question).map(({ shown, short }) => (isNarrow ? short : shown))
    this.place.ask(isNarrow ? `${choices.join(' ')}? ` : `Allow? ${choices.join('  ')}${more}: `)
  }

  #deny(question: Question): void {
    this.denied++
    // What ended meanwhile needs no answer.
    this.#send(question, 'reject-once').catch(() => {})
  }

  /** The event of the answer takes the question away, whoever gave it. */
  async #send({ id, turnId }: Question, decision: Decision): Promise<void> {
    const body = { request_id: id, turn_id: turnId, decision }
    await this.context.client.request('POST', `${this.base}/approve`, body)
  }
}

/** Saying no is always possible; saying yes only as the agent offers it. */
function offered({ options }: Question) {
  return ANSWERS.filter(({ decision }) => decision.startsWith('reject') || optionFor(options, decision))
}

function optionsOf(options: unknown): PermissionOption[] {
  const list = Array.isArray(options) ? (options as { option_id?: unknown; name?: unknown; kind?: unknown }[]) : []
  return list.map(({ option_id, name, kind }) => ({
    optionId: String(option_id),
    name: String(name),
    kind: String(kind),
  }))
}
