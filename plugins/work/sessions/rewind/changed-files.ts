import { clip } from '../../../../kernel/kit/text.js'
import type { StoredSessionEvent } from '../events.js'

/** Maximum number of files reported by one rewind. */
const MAX_FILES = 200
const CHANGING: ReadonlySet<unknown> = new Set(['edit', 'delete', 'move'])

/** The files changed by tool calls, as far as the agent reported them by kind, locations or diffs. */
export class ChangedFiles {
  readonly #paths = new Set<string>()

  take({ type, content }: StoredSessionEvent): void {
    if (type !== 'tool_call' && type !== 'tool_result') return
    if (content.status === 'failed') return
    for (const block of items(content.content)) if (block.type === 'diff') this.#add(block.path)
    if (CHANGING.has(content.kind)) for (const location of items(content.locations)) this.#add(location.path)
  }

  /** The changed files in the order of their first change. */
  list(): string[] {
    return [...this.#paths]
  }

  #add(path: unknown): void {
    if (typeof path === 'string' && path !== '' && this.#paths.size < MAX_FILES) this.#paths.add(clip(path, 4096))
  }
}

function items(value: unknown): Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(item => typeof item === 'object' && item !== null) : []
}
