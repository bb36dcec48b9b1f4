import { clip } from '../../../../kernel/kit/text.js'
import type { ToolCallFields } from '../protocol/schemas.js'

type Block = NonNullable<ToolCallFields['content']>[number]

/** Output of a terminal, in the form of a tool result. */
export interface TerminalOutput {
  readonly output: string
  readonly truncated: boolean
  readonly exitCode?: number | null
}

/** Terminals whose output is kept, and the last characters kept of each. */
const MAX_TERMINALS = 32
const MAX_CHARACTERS = 64 * 1024

/** The end of a text; a cut text begins at the start of a line. */
export function endOf(text: string): { readonly output: string; readonly truncated: boolean } {
  if (text.length <= MAX_CHARACTERS) return { output: text, truncated: false }
  const end = text.slice(-MAX_CHARACTERS).toWellFormed()
  return { output: end.slice(end.indexOf('\n') + 1), truncated: true }
}

/** Outputs by terminal, limited to the newest ones. */
export class TerminalOutputs {
  readonly #byId = new Map<string, TerminalOutput>()

  get(id: string): TerminalOutput | undefined {
    return this.#byId.get(id)
  }

  set(id: string, output: TerminalOutput): void {
    this.#byId.delete(id)
    this.#byId.set(id, output)
    for (const oldest of this.#byId.keys()) if (this.#byId.size > MAX_TERMINALS) this.#byId.delete(oldest)
  }

  /** Some agents run their own terminals and send the output in `_meta` of tool call updates. */
  note(meta: unknown): void {
    const { terminal_output: whole, terminal_output_delta: more, terminal_exit: exit } = Object(meta)
    const { terminal_id: id, data } = Object(more ?? whole)
    if (typeof id === 'string' && typeof data === 'string') {
      const before = this.#byId.get(clip(id, 1024))
      const { output, truncated } = endOf((before?.output ?? '') + data)
      this.set(clip(id, 1024), { ...before, output, truncated: truncated || before?.truncated === true })
    }
    const { terminal_id: ended, exit_code: exitCode } = Object(exit)
    const printed = typeof ended === 'string' ? this.#byId.get(clip(ended, 1024)) : undefined
    if (printed && (typeof exitCode === 'number' || exitCode === null))
      this.set(clip(ended, 1024), { ...printed, exitCode })
  }
}

/** The content of a tool call including terminal output; undefined when it names no known terminal. */
export function withOutputs(
  content: ToolCallFields['content'],
  outputOf: (terminalId: string) => TerminalOutput | undefined,
): Block[] | undefined {
  let isFound = false
  const all = content?.map(block => {
    const printed =
      block.type === 'terminal' && typeof block.terminalId === 'string' ? outputOf(block.terminalId) : undefined
    if (!printed) return block
    isFound = true
    return { ...block, ...printed }
  })
  return isFound ? all : undefined
}
