import type { CommandOutput } from '../../kernel/plugin.js'
import type { SessionEvent } from '../../schemas/sessions.js'

type Content = Readonly<Record<string, unknown>>

const MARKS: Readonly<Record<string, string>> = { completed: '✓', failed: '✗' }

/** Events as lines for a person: the running text of the agent, and one line for what else happens. */
export class EventLines {
  /** Text that has not come to the end of its line. */
  #text = ''
  #kind = ''
  readonly #calls = new Set<unknown>()

  constructor(
    private readonly sessionId: string,
    private readonly out: CommandOutput,
  ) {}

  show(event: SessionEvent): void {
    const content = (typeof event.content === 'object' && event.content !== null ? event.content : {}) as Content
    if (event.type === 'agent_message' || event.type === 'thought') {
      if (this.#kind !== event.type) this.end()
      this.#kind = event.type
      this.#write(String(content.text ?? ''))
      return
    }
    this.end()
    const line = this.#line(event, content)
    if (line !== undefined) this.out.line(line)
  }

  /** Writes what is left of an unfinished line. */
  end(): void {
    if (this.#text !== '') this.#emit(this.#text)
    this.#text = ''
  }

  #write(text: string): void {
    const lines = (this.#text + text).split('\n')
    this.#text = lines.pop() ?? ''
    for (const line of lines) this.#emit(line)
  }

  #emit(line: string): void {
    this.out.line(this.#kind === 'thought' ? this.out.color('dim', line) : line)
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
        return out.color('cyan', `• ${content.title} [${content.kind}] ${content.status}`)
      }
      case 'tool_result': {
        const mark = MARKS[String(content.status)] ?? ''
        const why = typeof content.error === 'string' ? `: ${content.error}` : ''
        return out.color(
          content.status === 'failed' ? 'red' : 'cyan',
          `• ${content.title} [${content.kind}] ${mark}${why}`,
        )
      }
      case 'permission':
        return this.#permission(content)
      case 'plan':
        return out.color('dim', `plan: ${planOf(content.entries)}`)
      case 'usage':
        return undefined
      case 'error':
        return out.color('red', `✗ ${content.error}`)
      case 'done':
        return out.color('dim', `— ${content.status === 'completed' ? content.stop_reason : content.status}`)
      case 'session_stopped': {
        const detail = event.stop_detail ? `: ${event.stop_detail}` : ''
        return out.color(event.failure ? 'red' : 'dim', `session stopped (${event.stop_reason ?? 'unknown'})${detail}`)
      }
      case 'transcript_marker.created':
        return out.color(
          'dim',
          `session restarted${content.loaded === true ? '' : ', with a summary of what was before'}`,
        )
      default:
        return out.color('dim', `${event.type}: ${content.text ?? content.warning ?? content.note ?? ''}`)
    }
  }

  #permission(content: Content): string {
    const { out } = this
    if (content.status === 'pending') {
      const verb = content.kind === 'execute' ? 'run' : String(content.kind ?? 'do')
      const what = content.command ?? content.title
      return out.color('yellow', `? ${verb}: ${what} (svc session approve ${this.sessionId})`)
    }
    const by = content.resolved_by === 'person' ? '' : ` (${content.resolved_by})`
    const what = content.title === undefined ? '' : ` ${content.title}`
    return out.color('yellow', `  ${content.decision}${by}${what}`)
  }
}

function planOf(entries: unknown): string {
  if (!Array.isArray(entries)) return ''
  const done = entries.filter(entry => (entry as Content | null)?.status === 'completed').length
  const current = entries.find(entry => (entry as Content | null)?.status === 'in_progress') as Content | undefined
  return `${done}/${entries.length}${current ? ` ${current.content}` : ''}`
}
