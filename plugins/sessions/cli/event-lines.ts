import type { ColorName } from '../../../kernel/plugin.js'
import type { SessionEvent } from '../../../schemas/sessions.js'
import { diffLines } from './diff.js'
import type { Prose, TaskContext } from './task-context.js'

/** One line for a person. */
interface Line {
  readonly text: string
  readonly color: ColorName
}

type Content = Readonly<Record<string, unknown>>

const MARKS: Readonly<Record<string, string>> = { completed: '✓', failed: '✗' }
/** Lines of one diff, and diffs of one event, that are shown. */
const MAX_DIFF_LINES = 40
const MAX_DIFFS = 5
/** Characters of what a failed tool said that are shown. */
const MAX_WHY = 200

/** Events for a person: the text of the agent as it comes, and one line for what else happens. */
export class EventLines {
  /** Whose text the unfinished line is. */
  #open: 'agent_message' | 'thought' | undefined
  /** What a line begins with. */
  #clock = ''
  readonly #calls = new Set<unknown>()
  /** Calls whose diff was shown, with the question about them or as their result. */
  readonly #diffed = new Set<unknown>()
  readonly #prose: Prose | undefined

  /** @param reader `asked`: it needs no command to answer with; `absent`: what is asked is rejected at once */
  constructor(
    private readonly sessionId: string,
    private readonly context: Pick<TaskContext, 'out' | 'markdown' | 'wrap'>,
    private readonly reader: 'asked' | 'absent' | 'elsewhere' = 'elsewhere',
    /** Each line begins with the time of the day at which it happened. */
    private readonly isTimed = false,
  ) {
    this.#prose = context.markdown?.()
  }

  show(event: SessionEvent): void {
    const content = contentOf(event)
    if (this.isTimed) this.#clock = `${clockText(event.timestamp)}  `
    if (event.type === 'agent_message' || event.type === 'thought') {
      if (this.#open !== event.type) this.end()
      this.#text(event.type, String(content.text ?? ''))
      return
    }
    this.end()
    const line = this.#line(event, content)
    if (line !== undefined) this.#print(line)
    if (event.type === 'permission' && content.status === 'pending') this.#diffs(content.tool_call_id, content.diffs)
    if (event.type === 'tool_result') this.#diffs(content.tool_call_id, content.content)
  }

  /** Ends an unfinished line. */
  end(): void {
    if (this.#open === 'agent_message' && this.#prose) this.#prose.end()
    else if (this.#open) this.context.out.text('\n')
    this.#open = undefined
  }

  /** A line, broken between words where it is too long; what follows its first row is indented. */
  #print({ text, color }: Line): void {
    const { out, wrap } = this.context
    const width = (out.width ?? Number.POSITIVE_INFINITY) - 1
    const edge = ' '.repeat(this.#clock.length)
    const [first = '', ...more] = wrap && Number.isFinite(width) ? wrap(text, width - 2 - edge.length) : [text]
    out.line(`${this.#clock && out.color('dim', this.#clock)}${out.color(color, first)}`)
    for (const row of more) out.line(out.color(color, `${edge}  ${row}`))
  }

  #text(type: 'agent_message' | 'thought', text: string): void {
    if (text === '') return
    const { out } = this.context
    if (type === 'agent_message' && this.#prose) {
      this.#prose.push(text)
      this.#open = type
      return
    }
    if (this.#open !== type && this.#clock) out.text(out.color('dim', this.#clock))
    out.text(type === 'thought' ? out.color('dim', text) : text)
    this.#open = text.endsWith('\n') ? undefined : type
  }

  #line(event: SessionEvent, content: Content): Line | undefined {
    switch (event.type) {
      case 'user_message':
        this.#calls.clear()
        this.#diffed.clear()
        return { color: 'bold', text: `> ${content.text}` }
      case 'tool_call': {
        // Its progress is told by its result.
        const known = this.#calls.has(content.tool_call_id)
        this.#calls.add(content.tool_call_id)
        if (known) return undefined
        const text = `• ${oneLine(content.title)} [${oneLine(content.kind)}] ${oneLine(content.status)}`
        return { color: 'cyan', text }
      }
      case 'tool_result': {
        const mark = MARKS[String(content.status)] ?? ''
        const isFailed = content.status === 'failed'
        const error = content.error ?? (isFailed ? firstLineOf(content.content) : undefined)
        const why = typeof error === 'string' ? `: ${oneLine(error)}` : ''
        return {
          color: isFailed ? 'red' : 'cyan',
          text: `• ${oneLine(content.title)} [${oneLine(content.kind)}] ${mark}${why}`,
        }
      }
      case 'permission':
        return { color: 'yellow', text: this.#permission(content) }
      case 'plan':
        return { color: 'dim', text: `plan: ${planOf(content.entries)}` }
      case 'usage':
        return undefined
      case 'runtime_warning':
        return { color: 'yellow', text: `warning: ${oneLine(content.text ?? content.warning ?? '')}` }
      case 'error':
        return { color: 'red', text: `✗ ${oneLine(content.error)}` }
      case 'done': {
        const how = content.status === 'completed' ? endOf(content.stop_reason) : oneLine(content.status)
        const expired = Number(content.expired_requests ?? 0)
        return { color: 'dim', text: `— ${how}${expired > 0 ? `, ${expired} requests expired` : ''}` }
      }
      case 'session_stopped': {
        const detail = event.stop_detail ? `: ${oneLine(event.stop_detail)}` : ''
        const text = `session stopped (${event.stop_reason ?? 'unknown'})${detail}`
        return { color: event.failure ? 'red' : 'dim', text }
      }
      case 'hook_run':
        return { color: 'dim', text: oneLine(content.text) }
      case 'transcript_marker.created': {
        return { color: 'dim', text: markerText(content) }
      }
      case 'system':
        if (content.note !== 'clarification') return { color: 'dim', text: oneLine(content.text ?? content.note ?? '') }
        return content.status === 'pending'
          ? { color: 'yellow', text: `? ${oneLine(content.text)}${this.reader === 'asked' ? ', or type /answer' : ''}` }
          : { color: 'dim', text: `  ${oneLine(content.text ?? 'nobody answered')}` }
      default:
        return {
          color: 'dim',
          text: `${oneLine(event.type)}: ${oneLine(content.text ?? content.warning ?? content.note ?? '')}`,
        }
    }
  }

  #permission(content: Content): string {
    if (content.status === 'pending') {
      const how = this.reader === 'elsewhere' ? ` (svc session approve ${this.sessionId})` : ''
      return `? ${wantedOf(content)}${how}`
    }
    const isByHook = content.resolved_by === 'hook'
    const what = content.title === undefined ? '' : ` ${isByHook ? wantedOf(content) : oneLine(content.title)}`
    const said = isByHook && content.note !== undefined ? ` — ${oneLine(content.note)}` : ''
    const isDenied = String(content.decision).startsWith('reject') && content.resolved_by === 'person'
    const why = this.reader === 'absent' && isDenied ? ': nobody is there to answer' : ''
    return `  ${verdictOf(content)}${why}${what === '' ? '.' : `:${what}`}${said}`
  }

  /** Diffs of a question or of a result, once for each call; of a question they are part of what is asked. */
  #diffs(callId: unknown, list: unknown): void {
    if (!Array.isArray(list) || this.#diffed.has(callId)) return
    const diffs = (list as (Content | null)[]).filter(one => typeof one?.path === 'string' && newTextOf(one) !== '')
    if (diffs.length === 0) return
    this.#diffed.add(callId)
    for (const diff of diffs.slice(0, MAX_DIFFS)) this.#diff(diff as Content)
    if (diffs.length > MAX_DIFFS) this.#print({ color: 'dim', text: `    … ${diffs.length - MAX_DIFFS} more files` })
  }

  #diff(diff: Content): void {
    const { out } = this.context
    const old = String(diff.old_text ?? diff.oldText ?? '')
    const lines = diffLines(old, newTextOf(diff))
    out.line(out.color('bold', `    ${oneLine(diff.path)}${old === '' ? ' (new)' : ''}`))
    for (const { sign, text } of lines.slice(0, MAX_DIFF_LINES)) {
      const row = `    ${sign} ${oneLine(text)}`
      out.line(sign === ' ' ? out.color('dim', row) : out.color(sign === '+' ? 'green' : 'red', row))
    }
    if (lines.length > MAX_DIFF_LINES) out.line(out.color('dim', `    … ${lines.length - MAX_DIFF_LINES} more lines`))
  }
}

/** What happened to a conversation as a whole. */
const MARKERS: Readonly<Record<string, string>> = {
  rewound: 'the conversation was cut back to here',
  cleared: 'the conversation begins anew',
  forked: 'the conversation goes on in another worktree',
}

/** What a marker in a conversation says, for a person. */
export function markerText(data: unknown): string {
  const { marker, loaded } = (data ?? {}) as Content
  const other = MARKERS[String(marker)]
  return other ?? `session restarted${loaded === true ? '' : ', with a summary of what was before'}`
}

/** Why a turn ended, for a person; the words are those of ACP. */
const ENDS: Readonly<Record<string, string>> = {
  end_turn: 'done',
  max_tokens: 'stopped: the limit of tokens is reached',
  max_turn_requests: 'stopped: the limit of requests in one turn is reached',
  refusal: 'the agent refused to go on',
}

const endOf = (reason: unknown) => ENDS[String(reason)] ?? oneLine(reason)

/** Time of the day in the zone of the reader. */
function clockText(timestamp: string): string {
  const at = new Date(timestamp)
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(part => String(part).padStart(2, '0')).join(':')
}

/** The content of an event; empty where it is no object. */
export function contentOf({ content }: SessionEvent): Content {
  return (typeof content === 'object' && content !== null ? content : {}) as Content
}

/** The first line that a tool gave as its text, without what marks it as code. */
function firstLineOf(content: unknown): string | undefined {
  const blocks = (Array.isArray(content) ? content : []) as ({ readonly content?: Content } | null)[]
  const lines = blocks.flatMap(block => String(block?.content?.text ?? '').split('\n'))
  return lines
    .map(line => line.trim())
    .find(line => line !== '' && !line.startsWith('```'))
    ?.slice(0, MAX_WHY)
}

const newTextOf = (diff: Content | null) => String(diff?.new_text ?? diff?.newText ?? '')

/** What became of a question, and why, for a person. */
function verdictOf({ decision, resolved_by: by }: Content): string {
  const said = String(decision)
  const verdict = said.startsWith('allow') ? 'Allowed' : said.startsWith('reject') ? 'Rejected' : 'Question withdrawn'
  const lasting = said.endsWith('always') ? ' for this session' : ''
  const reasons: Readonly<Record<string, string>> = {
    mode: ' by the permission mode',
    limit: ': too many questions',
    workspace: ': outside of the workspace',
    remembered: ' as before',
    timeout: ': nobody answered',
    hook: ' by a hook',
    rights: ': this session has not that tool',
  }
  return `${verdict}${lasting}${reasons[String(by)] ?? ''}`
}

/** What permission is asked for, in one line: the command, or the title with the paths that it is about. */
function wantedOf({ kind, command, title, paths }: Content): string {
  const what = oneLine(command ?? title)
  const others =
    command === undefined && Array.isArray(paths) ? paths.map(oneLine).filter(path => !isNamed(path, what)) : []
  const verb = kind === 'execute' ? 'run' : oneLine(kind ?? 'do')
  return `${verb}: ${what}${others.length > 0 ? ` — ${others.join(', ')}` : ''}`
}

/** Does a title name a path already, whole or from some folder on. */
function isNamed(path: string, title: string): boolean {
  return title.split(' ').some(word => word !== '' && (path === word || path.endsWith(`/${word}`)))
}

/** A value of an agent in one line: with a line break it could pass for something that this command says. */
export function oneLine(value: unknown): string {
  return String(value).replace(/\s*[\n\u2028\u2029]\s*/g, ' ⏎ ')
}

function planOf(entries: unknown): string {
  if (!Array.isArray(entries)) return ''
  const done = entries.filter(entry => (entry as Content | null)?.status === 'completed').length
  const current = entries.find(entry => (entry as Content | null)?.status === 'in_progress') as Content | undefined
  return `${done}/${entries.length}${current ? ` ${oneLine(current.content)}` : ''}`
}
