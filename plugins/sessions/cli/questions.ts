import type { CommandContext, CommandTerminal } from '../../../kernel/plugin.js'
import type { SessionEvent } from '../../../schemas/sessions.js'
import { type Decision, optionFor, type PermissionOption } from '../requests/permission-rules.js'
import { contentOf } from './event-lines.js'

/** Milliseconds after a question came up in which a line was typed before anybody can have read it. */
const TOO_SOON_MS = 250

const ANSWERS: readonly { readonly keys: readonly string[]; readonly shown: string; readonly decision: Decision }[] = [
  { keys: ['y', 'yes'], shown: '[y]es, once', decision: 'allow-once' },
  { keys: ['a', 'always'], shown: '[a]lways', decision: 'allow-always' },
  { keys: ['n', 'no'], shown: '[n]o', decision: 'reject-once' },
  { keys: ['never'], shown: 'never', decision: 'reject-always' },
]

interface Question {
  readonly id: string
  readonly turnId: string
  readonly options: readonly PermissionOption[]
}

/** What an agent asks, put to whoever sits at the terminal: one question at a time, and never a line for the wrong one. */
export class Questions {
  readonly #waiting = new Map<string, Question>()
  #asked: Question | undefined
  #askedAt = 0

  constructor(
    private readonly context: Pick<CommandContext, 'client' | 'out'>,
    private readonly terminal: CommandTerminal,
    private readonly base: string,
  ) {}

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
    if (!question) return
    const word = line.trim().toLowerCase()
    const answer = offered(question).find(({ keys }) => keys.includes(word))
    if (!answer || this.terminal.now() - this.#askedAt < TOO_SOON_MS) {
      this.#ask()
      return
    }
    const body = { request_id: question.id, turn_id: question.turnId, decision: answer.decision }
    // The event of the answer takes the question away, whoever gave it.
    await this.context.client.request('POST', `${this.base}/approve`, body)
  }

  #ask(): void {
    const [question] = this.#waiting.values()
    this.#asked = question
    this.#askedAt = this.terminal.now()
    if (!question) return
    const { out } = this.context
    const more = this.#waiting.size > 1 ? ` (${this.#waiting.size - 1} more)` : ''
    const choices = offered(question).map(({ shown }) => shown)
    out.text(out.color('yellow', `  ${choices.join(' · ')}${more}: `))
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
