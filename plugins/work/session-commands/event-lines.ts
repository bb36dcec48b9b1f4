import { command } from '../../../kernel/kit/commands/command-line.js'
import { clip } from '../../../kernel/kit/text.js'
import type { ColorName } from '../../../kernel/plugin.js'
import type { SessionEvent } from '../../../schemas/sessions.js'
import { oneLine } from './one-line.js'
import { BRIEF, diffRows, questionRows, type Row, resultDiffs, WHOLE } from './question-lines.js'
import type { Prose, TaskContext } from './task-context.js'
import { outputLines } from './tool-output.js'

/** One line for a person. */
interface Line {
  readonly text: string
  readonly color: ColorName
}

type Content = Readonly<Record<string, unknown>>

/** Events whose texts arrive in chunks. */
type TextType = 'agent_message' | 'thought'

/** A line of code or of a table, which is not wrapped. */
export const CODE = /^(?: {4}|\t|\| *\S|```|~~~)/
/** The mark of an item of a list. */
const LIST_MARK = /^ *(?:(?:[-*+]|\d+[.)]) +)?/

const MARKS: Readonly<Record<string, string>> = { completed: '✓', failed: '✗' }
/** Characters shown of the output of a failed tool. */
const MAX_WHY = 200
/** Maximum number of results kept in full, and of running tools shown. */
const MAX_RESULTS = 20
const MAX_LIVE = 5

/** Prints events for a person: the text of the agent as it arrives, and one line for each other event. */
export class EventLines {
  /** The type of the unfinished line. */
  #open: TextType | undefined
  /** Prefix of a line. */
  #clock = ''
  /** The unfinished row of a text that is wrapped, what comes before it, and the mark of a block of code around it. */
  #held = ''
  #before = ''
  #fence = ''
  /** The indentation of its further rows, once it has some. */
  #hang: string | undefined
  readonly #calls = new Set<unknown>()
  /** Calls whose diff was shown, with their question or their result. */
  readonly #diffed = new Set<unknown>()
  readonly #prose: Prose | undefined
  /** Running tools by call ID. On a screen their lines are below the stream. */
  readonly #running = new Map<unknown, string>()
  /** Results that were shown in part, newest first. */
  #results: Content[] = []
  /** Number of results shown in full since the newest one arrived. */
  #shownResults = 0

  /** @param reader `asked`: questions are answered here, so no command is shown; `absent`: questions are rejected at once */
  constructor(
    private readonly sessionId: string,
    private readonly context: Pick<TaskContext, 'out' | 'markdown' | 'wrap' | 'screen'>,
    private readonly reader: 'asked' | 'absent' | 'elsewhere' = 'elsewhere',
    /** Prefixes each line with the local time of its event. */
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
    if (event.type === 'done' || event.type === 'error' || event.type === 'session_stopped') {
      this.#running.clear()
      this.context.screen?.live([])
    }
    const line = this.#line(event, content)
    if (line !== undefined) this.#print(line)
    if (event.type === 'permission' && content.status === 'pending') this.#showQuestion(content)
    if (event.type === 'tool_result') this.#changed(content.tool_call_id, content.content)
  }

  /** Shows the newest result in full; repeated calls go back to earlier results. */
  showMore(): void {
    this.end()
    const { out } = this.context
    const content = this.#results[this.#shownResults]
    if (!content) {
      const text = this.#results.length === 0 ? 'No tool has printed or changed anything yet.' : 'Nothing is older.'
      this.#shownResults = 0
      out.line(out.color('dim', text))
      return
    }
    this.#shownResults++
    this.#print({ text: `${oneLine(content.title)} [${oneLine(content.kind)}]`, color: 'bold' })
    for (const line of outputLines(content)) out.line(`    ${line}`)
    this.#rows(diffRows(resultDiffs(content.content), WHOLE).rows)
  }

  /** Ends an unfinished line. */
  end(): void {
    if (this.#open === 'agent_message' && this.#prose) this.#prose.end()
    else if (this.#open && this.#wrap) this.#rest(this.#open)
    else if (this.#open) this.context.out.text('\n')
    this.#open = undefined
  }

  /** Prints a line, wrapped between words; continuation lines are indented. */
  #print({ text, color }: Line): void {
    const { out, wrap } = this.context
    const width = (out.width ?? Number.POSITIVE_INFINITY) - 1
    const edge = ' '.repeat(this.#clock.length)
    const [first = '', ...more] = wrap && Number.isFinite(width) ? wrap(text, width - 2 - edge.length) : [text]
    out.line(`${this.#clock && out.color('dim', this.#clock)}${out.color(color, first)}`)
    for (const row of more) out.line(out.color(color, `${edge}  ${row}`))
  }

  #text(type: TextType, text: string): void {
    if (text === '') return
    const { out } = this.context
    if (type === 'agent_message' && this.#prose) {
      this.#prose.push(text)
      this.#open = type
      return
    }
    if (this.#wrap) {
      this.#flow(type, text, this.#wrap)
      return
    }
    if (this.#open !== type && this.#clock) out.text(out.color('dim', this.#clock))
    out.text(type === 'thought' ? out.color('dim', text) : text)
    this.#open = text.endsWith('\n') ? undefined : type
  }

  /** Wraps the texts of a timed view on a terminal. */
  get #wrap() {
    return this.isTimed ? this.context.out.wrap : undefined
  }

  /** Prints the rows of a text as they fill; code stays whole. */
  #flow(type: TextType, text: string, wrap: NonNullable<TaskContext['out']['wrap']>): void {
    const { out } = this.context
    const edge = ' '.repeat(this.#clock.length)
    if (this.#open !== type) this.#before = out.color('dim', this.#clock)
    this.#open = type
    const lines = `${this.#held}${text}`.split('\n')
    this.#held = ''
    for (const [at, line] of lines.entries()) {
      const isEnded = at < lines.length - 1
      const isCode = this.#hang === undefined && (this.#fence !== '' || CODE.test(line))
      const hang = this.#hang ?? edge + ' '.repeat(LIST_MARK.exec(line)?.[0].length ?? 0)
      const rows = isCode ? [line] : wrap(line, (out.width ?? Number.POSITIVE_INFINITY) - hang.length)
      if (!isEnded) this.#held = rows.pop() ?? ''
      for (const row of rows) {
        this.#row(type, row)
        this.#before = hang
        this.#hang = hang
      }
      if (!isEnded) continue
      this.#before = edge
      this.#hang = undefined
      const mark = isCode ? /^ *(```|~~~)/.exec(line)?.[1] : undefined
      if (mark !== undefined && this.#fence === '') this.#fence = mark
      else if (mark === this.#fence) this.#fence = ''
    }
  }

  /** Ends a text that is wrapped. */
  #rest(type: TextType): void {
    if (this.#held !== '') this.#row(type, this.#held)
    this.#held = ''
    this.#fence = ''
    this.#hang = undefined
  }

  #row(type: TextType, row: string): void {
    const { out } = this.context
    const text =
      row === '' ? this.#before.trimEnd() : `${this.#before}${type === 'thought' ? out.color('dim', row) : row}`
    out.text(`${text}\n`)
  }

  #line(event: SessionEvent, content: Content): Line | undefined {
    switch (event.type) {
      case 'user_message':
        this.#calls.clear()
        this.#diffed.clear()
        return { color: 'bold', text: `> ${content.text}` }
      case 'tool_call':
        return this.#toolCall(content)
      case 'tool_result':
        return this.#toolResult(content)
      case 'permission':
        return { color: 'yellow', text: this.#permission(content) }
      case 'plan':
        return { color: 'dim', text: `plan: ${planOf(content.entries)}` }
      case 'usage':
        return undefined
      case 'runtime_warning':
        return { color: 'yellow', text: `warning: ${oneLine(content.text ?? content.warning ?? '')}` }
      case 'error':
        return { color: 'red', text: `✗ ${failureText(oneLine(content.error))}` }
      case 'done': {
        const how = content.status === 'completed' ? endOf(content.stop_reason) : oneLine(content.status)
        const expired = Number(content.expired_requests ?? 0)
        return {
          color: 'dim',
          text: `— ${how}${expired > 0 ? `, ${expired} ${expired === 1 ? 'request' : 'requests'} expired` : ''}`,
        }
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
          ? { color: 'yellow', text: `? ${this.reader === 'asked' ? this.#worded(content) : oneLine(content.text)}` }
          : { color: 'dim', text: `  ${oneLine(content.text ?? 'nobody answered')}` }
      default:
        return {
          color: 'dim',
          text: `${oneLine(event.type)}: ${oneLine(content.text ?? content.warning ?? content.note ?? '')}`,
        }
    }
  }

  /** A timed view also shows the start of a call; other views show a call once, with its result. */
  #toolCall(content: Content): Line | undefined {
    const text = `• ${oneLine(content.title)} [${oneLine(content.kind)}]`
    if (!this.isTimed) {
      this.#runs(content.tool_call_id, text)
      return undefined
    }
    const known = this.#calls.has(content.tool_call_id)
    this.#calls.add(content.tool_call_id)
    return known ? undefined : { color: 'cyan', text: `${text} ${oneLine(content.status)}` }
  }

  #toolResult(content: Content): Line {
    this.#runs(content.tool_call_id, undefined)
    const more = this.#moreOf(content)
    const mark = MARKS[String(content.status)] ?? ''
    const isFailed = content.status === 'failed'
    const error = content.error ?? (isFailed ? firstLineOf(content.content) : undefined)
    const why = typeof error === 'string' ? `: ${oneLine(error)}` : ''
    const text = `• ${oneLine(content.title)} [${oneLine(content.kind)}] ${mark}${why}${more}`
    return { color: isFailed ? 'red' : 'cyan', text }
  }

  /** Updates the display of a running tool; undefined: it has ended. */
  #runs(callId: unknown, text: string | undefined): void {
    const { screen } = this.context
    if (!screen) return
    if (text === undefined) this.#running.delete(callId)
    else this.#running.set(callId, text)
    screen.live([...this.#running.values()].slice(-MAX_LIVE))
  }

  /** Keeps the output and changes of a tool, and returns the hint how to show them. */
  #moreOf(content: Content): string {
    if (!this.context.screen) return ''
    const count = outputLines(content).length
    if (count === 0 && resultDiffs(content.content).length === 0) return ''
    this.#results = [content, ...this.#results].slice(0, MAX_RESULTS)
    this.#shownResults = 0
    return count === 0 ? '' : ` · ${count} ${count === 1 ? 'line' : 'lines'}, Ctrl-O`
  }

  /** A question in words, for the person who answers it here. */
  #worded({ asked_by: by, question, choices }: Content): string {
    const list = Array.isArray(choices) ? choices.map((choice, at) => `${at + 1} ${oneLine(choice)}`) : []
    return `${oneLine(by)} asks: ${oneLine(question)}${list.length > 0 ? ` (${list.join(' / ')})` : ''}`
  }

  #permission(content: Content): string {
    if (content.status === 'pending') {
      const how = this.reader === 'elsewhere' ? ` (${command('session approve', this.sessionId)})` : ''
      return `? ${questionRows(content, BRIEF).head}${how}`
    }
    const isByHook = content.resolved_by === 'hook'
    const what =
      content.title === undefined ? '' : ` ${isByHook ? questionRows(content, BRIEF).head : oneLine(content.title)}`
    const said = isByHook && content.note !== undefined ? ` — ${oneLine(content.note)}` : ''
    const isDenied = String(content.decision).startsWith('reject') && content.resolved_by === 'person'
    const why = this.reader === 'absent' && isDenied ? ': no one is available to answer' : ''
    return `  ${verdictOf(content)}${why}${what === '' ? '.' : `:${what}`}${said}`
  }

  /** Shows the command or the changes below the line of the question. */
  #showQuestion(content: Content): void {
    const { rows, isCut } = questionRows(content, BRIEF)
    if (Array.isArray(content.diffs)) this.#diffed.add(content.tool_call_id)
    this.#rows(rows)
    if (!isCut) return
    const show = command('session interactions', this.sessionId, oneLine(content.request_id))
    const how = this.reader === 'asked' ? '[s] shows all of it' : `All of it: ${show}`
    this.#rows([{ text: `    ${how}`, color: 'yellow' }])
  }

  /** Shows the diffs of a result, unless its question showed them. */
  #changed(callId: unknown, list: unknown): void {
    if (this.#diffed.has(callId)) return
    const diffs = resultDiffs(list)
    if (diffs.length === 0) return
    this.#diffed.add(callId)
    const { rows, isCut } = diffRows(diffs, BRIEF)
    this.#rows(rows)
    if (isCut && this.context.screen) this.#rows([{ text: '    Ctrl-O shows all of it', color: 'yellow' }])
  }

  #rows(rows: readonly Row[]): void {
    const { out } = this.context
    for (const { text, color } of rows) out.line(color ? out.color(color, text) : text)
  }
}

/** Texts for the markers of a conversation. */
const MARKERS: Readonly<Record<string, string>> = {
  rewound: 'the conversation was rewound to here',
  cleared: 'the conversation starts over',
  forked: 'the conversation goes on in another worktree',
}

/** The text of a conversation marker, for a person. */
export function markerText(data: unknown): string {
  const { marker, loaded } = (data ?? {}) as Content
  const other = MARKERS[String(marker)]
  return other ?? `session restarted${loaded === true ? '' : ', with a summary of the earlier conversation'}`
}

/** Texts for the ACP stop reasons. */
const ENDS: Readonly<Record<string, string>> = {
  end_turn: 'done',
  max_tokens: 'stopped: the limit of tokens is reached',
  max_turn_requests: 'stopped: the limit of requests in one turn is reached',
  refusal: 'the agent refused to go on',
}

const endOf = (reason: unknown) => ENDS[String(reason)] ?? oneLine(reason)

/** Local time of day. */
function clockText(timestamp: string): string {
  const at = new Date(timestamp)
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(part => String(part).padStart(2, '0')).join(':')
}

/** The content of an event; empty when it is not an object. */
export function contentOf({ content }: SessionEvent): Content {
  return (typeof content === 'object' && content !== null ? content : {}) as Content
}

/** The first text line of a tool result, without code marks. */
function firstLineOf(content: unknown): string | undefined {
  const blocks = (Array.isArray(content) ? content : []) as ({ readonly content?: Content } | null)[]
  const lines = blocks.flatMap(block => String(block?.content?.text ?? '').split('\n'))
  const first = lines.map(line => line.trim()).find(line => line !== '' && !line.startsWith('```'))
  return first && clip(first, MAX_WHY)
}

/** The decision about a question with its reason, for a person. */
function verdictOf({ decision, resolved_by: by, note }: Content): string {
  const said = String(decision)
  const verdict = said.startsWith('allow') ? 'Allowed' : said.startsWith('reject') ? 'Rejected' : 'Question withdrawn'
  const lasting = said.endsWith('always') ? ' for this session' : ''
  const reasons: Readonly<Record<string, string>> = {
    mode: ' by the permission mode',
    limit: ': too many questions',
    workspace: `: ${oneLine(note ?? 'outside of the workspace')}`,
    remembered: ' as before',
    timeout: ': nobody answered',
    hook: ' by a hook',
    rights: ': this session does not have that tool',
  }
  return `${verdict}${lasting}${reasons[String(by)] ?? ''}`
}

function planOf(entries: unknown): string {
  if (!Array.isArray(entries)) return ''
  const done = entries.filter(entry => (entry as Content | null)?.status === 'completed').length
  const current = entries.find(entry => (entry as Content | null)?.status === 'in_progress') as Content | undefined
  return `${done}/${entries.length}${current ? ` ${oneLine(current.content)}` : ''}`
}

/** Words for the kinds of failures. The names of the others, such as `timeout`, are words already. */
const FAILURES: Readonly<Partial<Record<string, string>>> = {
  startup_failure: 'the agent did not start',
  handshake_failure: 'the agent did not answer the first request',
  load_session_failure: 'the agent could not load the session',
  protocol_failure: 'the agent did not keep to the protocol',
  prompt_failure: 'the agent refused the prompt',
  process_exit: 'the agent ended',
  transport_failure: 'the connection to the agent broke',
  unknown_failure: 'the agent failed',
}

/** The text of a failed turn, with its kind in words. */
const failureText = (text: string): string =>
  text.replace(/^([a-z_]+)(?=: )/, kind => (Object.hasOwn(FAILURES, kind) ? (FAILURES[kind] ?? kind) : kind))
