import type { CommandOutput } from '../../../kernel/plugin.js'
import type { SessionEvent } from '../../../schemas/sessions.js'

type Content = Readonly<Record<string, unknown>>

const MARKS: Readonly<Record<string, string>> = { completed: '✓', failed: '✗' }

/** Events for a person: the text of the agent as it comes, and one line for what else happens. */
export class EventLines {
  /** Whose text the unfinished line is. */
  #open: 'agent_message' | 'thought' | undefined
  readonly #calls = new Set<unknown>()

  /** @param answerable the reader is asked, so that it needs no command to answer with */
  constructor(
    private readonly sessionId: string,
    private readonly out: CommandOutput,
    private readonly answerable = false,
  ) {}

  show(event: SessionEvent): void {
    const content = contentOf(event)
    if (event.type === 'agent_message' || event.type === 'thought') {
      if (this.#open !== event.type) this.end()
      this.#text(event.type, String(content.text ?? ''))
      return
    }
    this.end()
    const line = this.#line(event, content)
    if (line !== undefined) this.out.line(line)
  }

  /** Ends an unfinished line. */
  end(): void {
    if (this.#open) this.out.text('\n')
    this.#open = undefined
  }

  #text(type: 'agent_message' | 'thought', text: string): void {
    if (text === '') return
    this.out.text(type === 'thought' ? this.out.color('dim', text) : text)
    this.#open = text.endsWith('\n') ? undefined : type
  }

  #line(event: SessionEvent, content: Content): string | undefined {
    const { out } = this
    switch (event.type) {
      case 'user_message':
        this.#calls.clear()
        return out.color('bold', `> ${content.text}`)
      case 'tool_call': {
        // Its progress is told by its result.
        const known = this.#calls.has(content.tool_call_id)
        this.#calls.add(content.tool_call_id)
        if (known) return undefined
        return out.color('cyan', `• ${oneLine(content.title)} [${oneLine(content.kind)}] ${oneLine(content.status)}`)
      }
      case 'tool_result': {
        const mark = MARKS[String(content.status)] ?? ''
        const why = typeof content.error === 'string' ? `: ${oneLine(content.error)}` : ''
        return out.color(
          content.status === 'failed' ? 'red' : 'cyan',
          `• ${oneLine(content.title)} [${oneLine(content.kind)}] ${mark}${why}`,
        )
      }
      case 'permission':
        return this.#permission(content)
      case 'plan':
        return out.color('dim', `plan: ${planOf(content.entries)}`)
      case 'usage':
        return undefined
      case 'error':
        return out.color('red', `✗ ${oneLine(content.error)}`)
      case 'done':
        return out.color('dim', `— ${oneLine(content.status === 'completed' ? content.stop_reason : content.status)}`)
      case 'session_stopped': {
        const detail = event.stop_detail ? `: ${oneLine(event.stop_detail)}` : ''
        return out.color(event.failure ? 'red' : 'dim', `session stopped (${event.stop_reason ?? 'unknown'})${detail}`)
      }
      case 'transcript_marker.created':
        return out.color(
          'dim',
          `session restarted${content.loaded === true ? '' : ', with a summary of what was before'}`,
        )
      default:
        return out.color(
          'dim',
          `${oneLine(event.type)}: ${oneLine(content.text ?? content.warning ?? content.note ?? '')}`,
        )
    }
  }

  #permission(content: Content): string {
    const { out } = this
    if (content.status === 'pending') {
      const how = this.answerable ? '' : ` (svc session approve ${this.sessionId})`
      return out.color('yellow', `? ${wantedOf(content)}${how}`)
    }
    const by = content.resolved_by === 'person' ? '' : ` (${oneLine(content.resolved_by)})`
    const what = content.title === undefined ? '' : ` ${oneLine(content.title)}`
    return out.color('yellow', `  ${oneLine(content.decision)}${by}${what}`)
  }
}

/** The content of an event; empty where it is no object. */
export function contentOf({ content }: SessionEvent): Content {
  return (typeof content === 'object' && content !== null ? content : {}) as Content
}

/** What permission is asked for, in one line: the command, or the title with the paths that it is about. */
function wantedOf({ kind, command, title, paths }: Content): string {
  const what = oneLine(command ?? title)
  const others =
    command === undefined && Array.isArray(paths) ? paths.map(oneLine).filter(path => !what.includes(path)) : []
  const verb = kind === 'execute' ? 'run' : oneLine(kind ?? 'do')
  return `${verb}: ${what}${others.length > 0 ? ` — ${others.join(', ')}` : ''}`
}

/** A value of an agent in one line: with a line break it could pass for something that this command says. */
function oneLine(value: unknown): string {
  return String(value).replace(/\s*[\n\u2028\u2029]\s*/g, ' ⏎ ')
}

function planOf(entries: unknown): string {
  if (!Array.isArray(entries)) return ''
  const done = entries.filter(entry => (entry as Content | null)?.status === 'completed').length
  const current = entries.find(entry => (entry as Content | null)?.status === 'in_progress') as Content | undefined
  return `${done}/${entries.length}${current ? ` ${oneLine(current.content)}` : ''}`
}
