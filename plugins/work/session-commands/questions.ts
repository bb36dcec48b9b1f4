import type { ApproveBody, Clarification, InteractionReply, SessionEvent } from '../../../schemas/sessions.js'
import { type Decision, optionFor, type PermissionOption } from '../acp/api.js'
import { contentOf } from './event-lines.js'
import { oneLine } from './one-line.js'
import { BRIEF, questionRows, WHOLE } from './question-lines.js'
import type { KeyUse, TaskContext } from './task-context.js'
import { answerOf } from './whole-commands.js'

/** Milliseconds after a question in which a typed line is ignored, because it cannot be an answer yet. */
const TOO_SOON_MS = 250
/** Milliseconds without a key before a key counts as an answer, if the person was typing when the question appeared. */
const TYPING_MS = 1000
/** Maximum number of choices for one-digit answers. */
const MAX_DIGITS = 9

/** Default width of the terminal. */
const USUAL_WIDTH = 80

interface Answer {
  readonly keys: readonly string[]
  readonly shown: string
  /** For a narrow terminal. */
  readonly short: string
  readonly decision: Decision
}

const ANSWERS: readonly Answer[] = [
  { keys: ['y', 'yes'], shown: '[y] once', short: '[y]es', decision: 'allow-once' },
  { keys: ['a', 'always'], shown: '[a] this session', short: '[a]lways', decision: 'allow-always' },
  { keys: ['n', 'no'], shown: '[n] no', short: '[n]o', decision: 'reject-once' },
  { keys: ['v', 'never'], shown: '[v] never', short: 'ne[v]er', decision: 'reject-always' },
]
const SHOW = { keys: ['s', 'show'], shown: '[s] show', short: '[s]how' }
const INSTEAD = { keys: ['i', 'instead'], shown: '[i] instead', short: '[i]nstead' }
const INSTEAD_PROMPT = 'No. Do this instead (Escape goes back): '

/** A permission request. */
interface Permission {
  readonly id: string
  readonly turnId: string
  readonly options: readonly PermissionOption[]
  /** The question was not shown in full. */
  readonly isCut: boolean
}

/** A question that is answered in words. */
type Worded = Pick<Clarification, 'choices' | 'optional' | 'multiple'> & { readonly id: string; readonly words: true }

type Question = Permission | Worded

/** The place of a question, and the clock for the time that a person had to read it. */
export interface QuestionTerminal {
  /** Shows the possible answers; undefined: no question is open. */
  ask(prompt: string | undefined): void
  /** Milliseconds of a monotonic clock. */
  now(): number
  /** Whether single key presses are received; without them a line is the answer. */
  readonly hasKeys: boolean
  /** Whether the input line has text that was not entered. */
  isTyping(): boolean
}

/** Asks the questions of an agent at the terminal, one at a time, so that no input reaches the wrong question. */
export class Questions {
  readonly #waiting = new Map<string, Question>()
  #current: Question | undefined
  #askedAt = 0
  /** Time of the last key press, and the required pause before a key counts as an answer. */
  #pressedAt = 0
  #quietMs = TOO_SOON_MS
  /** The answered question whose event has not arrived yet. */
  #answered: string | undefined
  /** The next typed text is an instruction that replaces the requested operation. */
  #isInstead = false
  #isHinted = false

  /**
   * @param terminal undefined: there is no terminal, so questions are rejected at once
   * @param steer sends the instruction that replaces the requested operation
   */
  constructor(
    private readonly context: Pick<TaskContext, 'client' | 'out'>,
    private readonly terminal: QuestionTerminal | undefined,
    private readonly base: string,
    private readonly steer: (text: string) => Promise<void>,
  ) {}

  /** Number of questions rejected without a person at the terminal. */
  denied = 0

  /** Whether the next typed line is an answer. */
  get isAsking(): boolean {
    return this.#current !== undefined
  }

  /** Whether this line answers the open question; slash commands do not answer a question in words. */
  takes(line: string): boolean {
    return this.#current !== undefined && !('words' in this.#current && line.trim().startsWith('/'))
  }

  /** Processes an event that was shown. Only live, pending questions are asked; those of the history are not (`isLive` false). */
  take(event: SessionEvent, isLive: boolean): void {
    const content = contentOf(event)
    const question =
      event.type === 'permission'
        ? permissionOf(event)
        : content.note === 'clarification'
          ? wordedOf(content)
          : undefined
    if (question && content.status !== 'pending') this.#waiting.delete(question.id)
    else if (question) this.#waiting.set(question.id, question)
    const [first] = this.#waiting.values()
    if (isLive && first !== this.#current) this.#ask()
  }

  /** Answers the open question with a line; an invalid answer repeats the question. */
  async answer(line: string): Promise<void> {
    const question = this.#current
    if (!question || !this.terminal) return
    if (this.#isInstead && !('words' in question)) return this.#redirect(question, line)
    if (this.terminal.now() - this.#askedAt < TOO_SOON_MS) return this.#ask()
    if ('words' in question) return this.#tell(question, line)
    const [, instead] = /^\s*i(?:nstead)?\s+(\S.*)$/is.exec(line) ?? []
    if (instead !== undefined) return this.#redirect(question, instead)
    await this.#choose(question, line.trim().toLowerCase())
  }

  /**
   * Handles a key press. A key too soon after the question, or while the person types, belongs to the typed text. Undefined when
   * the key answers no open question.
   */
  press(key: string, typed: string): KeyUse | undefined {
    const question = this.#current
    if (!question || !this.terminal?.hasKeys || key.startsWith('ctrl-')) return undefined
    if (this.#isInstead) {
      if (key !== 'escape') return 'edit'
      this.#ask()
      return 'taken'
    }
    const now = this.terminal.now()
    const quiet = now - Math.max(this.#askedAt, this.#pressedAt)
    this.#pressedAt = now
    if (typed === '' && quiet < this.#quietMs) return 'aside'
    const isWorded = 'words' in question
    if (isWorded && !(typed === '' && isDigitOf(question, key))) return 'edit'
    if (this.#answered === question.id) return 'taken'
    const choice = isWorded ? this.#tell(question, key) : this.#choose(question, key.toLowerCase())
    choice.catch(error => {
      this.#answered = undefined
      this.context.out.line(this.context.out.color('red', `  ${oneLine((error as Error).message)}`))
      this.#ask()
    })
    return 'taken'
  }

  async #choose(question: Permission, word: string): Promise<void> {
    if (SHOW.keys.includes(word)) return this.#show(question)
    if (INSTEAD.keys.includes(word) && this.terminal?.hasKeys) {
      this.#isInstead = true
      this.terminal.ask(INSTEAD_PROMPT)
      return
    }
    const answer = offered(question).find(({ keys }) => keys.includes(word))
    if (answer) return this.#send(question, answer.decision)
    if (!this.#isHinted) {
      this.#isHinted = true
      const keys = [...offered(question), INSTEAD, SHOW].map(({ keys: [first] }) => first).join(', ')
      const { out } = this.context
      const what = this.terminal?.hasKeys ? `Press one of ${keys}.` : `Type one of ${keys} (i with what to do instead).`
      out.line(out.color('dim', `  ${what}`))
    }
    this.#ask()
  }

  /** Rejects and sends an instruction: the agent gets both together. */
  async #redirect(question: Permission, text: string): Promise<void> {
    if (text.trim() === '') return this.#ask()
    this.#isInstead = false
    await this.steer(text)
    await this.#send(question, 'reject-once')
  }

  #ask(): void {
    const [question] = this.#waiting.values()
    this.#current = question
    if (!this.terminal) {
      if (question && !('words' in question)) this.#deny(question)
      return
    }
    this.#isInstead = false
    this.#askedAt = this.terminal.now()
    if (!question) {
      this.terminal.ask(undefined)
      return
    }
    this.#quietMs = this.terminal.isTyping() ? TYPING_MS : TOO_SOON_MS
    const more = this.#waiting.size > 1 ? ` (${this.#waiting.size - 1} more)` : ''
    if ('words' in question) {
      this.terminal.ask(`${howTo(question)}${more}: `)
      return
    }
    const answers = [...offered(question), INSTEAD, ...(question.isCut ? [SHOW] : [])]
    const whole = `Allow? ${answers.map(({ shown }) => shown).join('  ')}${more}: `
    const isNarrow = whole.length >= (this.context.out.width ?? USUAL_WIDTH)
    this.terminal.ask(isNarrow ? `${answers.map(({ short }) => short).join(' ')}? ` : whole)
  }

  /** Shows a question in full, and asks it again. */
  async #show({ id }: Permission): Promise<void> {
    const { client, out } = this.context
    const path = `${this.base}/interactions/${encodeURIComponent(id)}`
    const { interaction } = (await client.request('GET', path)) as InteractionReply
    const { head, rows } = questionRows({ ...interaction, kind: interaction.tool_kind }, WHOLE)
    out.line(out.color('yellow', `? ${head}`))
    for (const { text, color } of rows) out.line(color ? out.color(color, text) : text)
    this.#ask()
  }

  #deny(question: Permission): void {
    this.denied++
    // A daemon from before an upgrade refuses the member, and a question that has ended in the meantime needs no answer.
    this.#send(question, 'reject-once', { unattended: true })
      .catch(() => this.#send(question, 'reject-once'))
      .catch(() => {})
  }

  /** Sends an answer. The event of the answer removes the question, also when another client answered it. */
  async #send({ id, turnId }: Permission, decision: Decision, more: Partial<ApproveBody> = {}): Promise<void> {
    this.#answered = id
    const body: ApproveBody = { request_id: id, turn_id: turnId, decision, ...more }
    await this.context.client.request('POST', `${this.base}/approve`, body)
  }

  /** Answers in words; an invalid answer is reported, and the question is asked again. */
  async #tell(question: Worded, line: string): Promise<void> {
    const { client, out } = this.context
    const path = `${this.base}/clarifications/${encodeURIComponent(question.id)}/answer`
    const isEmpty = line.trim() === ''
    if (isEmpty && !question.optional) return this.#ask()
    try {
      await client.request('POST', path, isEmpty ? { skip: true } : answerOf(question, line))
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'clarification_invalid') throw error
      out.line(out.color('red', `  ${oneLine((error as Error).message)}`))
      this.#ask()
    }
  }
}

/** A rejection is always possible, an approval only if the agent offers it. */
function offered({ options }: Permission) {
  return ANSWERS.filter(({ decision }) => decision.startsWith('reject') || optionFor(options, decision))
}

/** Whether this key is the number of a choice, where one digit is enough. */
function isDigitOf({ choices = [], multiple }: Worded, key: string): boolean {
  return !multiple && choices.length <= MAX_DIGITS && /^[1-9]$/.test(key) && Number(key) <= choices.length
}

/** The instruction for answering a question in words. */
function howTo({ choices, multiple, optional }: Worded): string {
  const range = `1-${choices?.length ?? 0}`
  const what = !choices ? 'Answer' : multiple ? `Numbers ${range}, with commas` : `Number ${range}`
  return `${what}${optional ? ', Enter skips' : ''}`
}

function permissionOf(event: SessionEvent): Permission {
  const content = contentOf(event)
  const { isCut } = questionRows(content, BRIEF)
  return { id: String(content.request_id), turnId: event.turn_id, options: optionsOf(content.options), isCut }
}

function wordedOf({ request_id, choices, optional, multiple }: Readonly<Record<string, unknown>>): Worded {
  return {
    id: String(request_id),
    words: true,
    ...(Array.isArray(choices) && { choices: choices.map(String) }),
    optional: optional === true,
    multiple: multiple === true,
  }
}

function optionsOf(options: unknown): PermissionOption[] {
  const list = Array.isArray(options) ? (options as { option_id?: unknown; name?: unknown; kind?: unknown }[]) : []
  return list.map(({ option_id, name, kind }) => ({
    optionId: String(option_id),
    name: String(name),
    kind: String(kind),
  }))
}
