import { clip } from '../../../../kernel/kit/text.js'
import type { RecordedPage } from '../../../work/sessions/api.js'

/** Kept characters of an answer, more than any platform gets. */
const MAX_TEXT = 256 * 1024
const MAX_TITLE = 120
/** Tools that the modes `all` and `verbose` show. */
const SHOWN_TOOLS = 5

export type ProgressMode = 'off' | 'new' | 'all' | 'verbose'

type JournalEvent = RecordedPage['events'][number]

/** Events between two texts that start a new paragraph. */
const BREAKS: ReadonlySet<string> = new Set(['thought', 'tool_call', 'tool_result', 'plan', 'permission'])

/** End of a turn. `unsent`: the agent never got the prompt, which can be sent again. */
export type TurnEnd =
  | { readonly how: 'done' }
  | { readonly how: 'canceled' }
  | { readonly how: 'dropped' }
  | { readonly how: 'failed'; readonly why: string; readonly unsent: boolean }

interface Tool {
  readonly id: string
  title: string
  status: 'runs' | 'done' | 'failed'
}

/** The part of a turn that a chat shows, derived from its journal only, so that a repetition gives the same result. */
export class Projection {
  text = ''
  /** The text in segments, separated by the agent's actions such as tool calls. */
  readonly segments: string[] = []
  end: TurnEnd | undefined
  /** Whether its prompt has left the queue. */
  isBegun = false
  readonly #tools: Tool[] = []
  #breaks = false

  constructor(readonly turnId: string) {}

  /** Applies an event; events of other turns are ignored. Returns whether the visible part changed. */
  add({ type, turnId, content }: JournalEvent): boolean {
    if (turnId !== this.turnId || this.end) return false
    if (BREAKS.has(type)) this.#breaks = true
    switch (type) {
      case 'user_message':
        this.isBegun = true
        return false
      case 'agent_message':
        return this.#say(content)
      case 'tool_call':
      case 'tool_result':
        return this.#tool(type, content)
      case 'done':
        this.end = { how: content.status === 'canceled' ? 'canceled' : 'done' }
        return true
      case 'error':
        this.end = { how: 'failed', why: wordsOf(content.error), unsent: content.prompt_sent === false }
        return true
      case 'system':
        if (content.note !== 'prompt_dropped') return false
        this.end = { how: 'dropped' }
        return true
      default:
        return false
    }
  }

  /** Number of segments that no longer grow. */
  get closed(): number {
    return this.#breaks || this.end ? this.segments.length : Math.max(0, this.segments.length - 1)
  }

  /** Progress of its tools for the end of a growing text; empty if hidden. */
  progress(mode: ProgressMode): string {
    const running = this.#tools.filter(({ status }) => status === 'runs')
    if (mode === 'off' || this.#tools.length === 0) return ''
    const shown =
      mode === 'new' ? running.slice(-1) : this.#tools.slice(mode === 'all' ? -SHOWN_TOOLS : -2 * SHOWN_TOOLS)
    const marks = { runs: '…', done: '✓', failed: '✗' }
    return shown.map(({ title, status }) => `${marks[status]} ${title}`).join('\n')
  }

  /** Title of the latest tool, for a message of its own. */
  get newest(): string | undefined {
    return this.#tools.at(-1)?.title
  }

  #say({ text, block }: JournalEvent['content']): boolean {
    const said = typeof text === 'string' ? text : block === undefined ? '' : '[not a text]'
    if (said === '' || this.text.length >= MAX_TEXT) return false
    const ends = /\n{0,2}$/.exec(this.text)?.[0].length ?? 0
    const isNext = this.#breaks && this.text !== ''
    const gap = isNext ? '\n'.repeat(2 - ends) : ''
    const before = isNext ? undefined : this.segments.pop()
    this.segments.push(clip(`${before ?? ''}${said}`, MAX_TEXT))
    this.#breaks = false
    this.text = clip(this.text + gap + said, MAX_TEXT)
    return true
  }

  #tool(type: 'tool_call' | 'tool_result', { tool_call_id, title, status }: JournalEvent['content']): boolean {
    const id = String(tool_call_id ?? '')
    const known = this.#tools.find(tool => tool.id === id)
    const named = typeof title === 'string' && title !== '' ? oneLine(title) : undefined
    if (!known) {
      this.#tools.push({ id, title: named ?? 'a tool', status: type === 'tool_call' ? 'runs' : 'done' })
      if (this.#tools.length > 2 * SHOWN_TOOLS) this.#tools.shift()
      return true
    }
    if (named) known.title = named
    if (type === 'tool_result') known.status = status === 'failed' ? 'failed' : 'done'
    return true
  }
}

const oneLine = (text: string): string => clip(text.replace(/\s+/g, ' ').trim(), MAX_TITLE)
const wordsOf = (error: unknown): string => clip(oneLine(typeof error === 'string' ? error : 'unknown failure'), 300)
