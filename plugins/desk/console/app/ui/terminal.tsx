import { useEffect, useState } from 'preact/hooks'
import { text } from '../text.js'
import type { Piece } from './ansi.js'
import { Badge, Loading } from './parts.js'

export interface TerminalOutput {
  readonly id: string
  readonly output: string
  readonly truncated: boolean
  readonly exitCode: number | undefined
}

/** The terminal outputs in the result of a tool. */
export function terminalsOf(output: unknown): TerminalOutput[] {
  const { content } = Object(output) as { content?: unknown }
  return (Array.isArray(content) ? content : []).flatMap(item => {
    const {
      type,
      terminalId,
      terminal_id: id,
      output: said,
      truncated,
      ...more
    } = Object(item) as Record<string, unknown>
    if (type !== 'terminal' || typeof said !== 'string') return []
    const exit = more.exitCode ?? more.exit_code
    return [
      {
        ...{ id: String(terminalId ?? id ?? ''), output: said, truncated: truncated === true },
        exitCode: typeof exit === 'number' ? exit : undefined,
      },
    ]
  })
}

/**
 * Output of the agent's terminal, rendered as elements: the content security policy refuses the style sheets that terminal
 * emulators add.
 */
export function Terminal({ output, truncated, exitCode }: TerminalOutput) {
  const [lines, set] = useState<readonly (readonly Piece[])[]>()
  useEffect(() => {
    let isOver = false
    void import('./ansi.js').then(({ terminalLines }) => isOver || set(terminalLines(output)))
    return () => {
      isOver = true
    }
  }, [output])
  if (!lines) return <Loading />
  return (
    <figure class="terminal">
      <figcaption>
        <span class="label">{text.terminal.title}</span>
        {truncated && <span class="muted">{text.terminal.truncated}</span>}
        {exitCode !== undefined && <Badge of={exitCode === 0 ? 'completed' : 'failed'} />}
        {exitCode !== undefined && <span class="muted">{text.terminal.exit(exitCode)}</span>}
      </figcaption>
      <pre tabIndex={0} role="region" aria-label={text.terminal.title}>
        {lines.map((pieces, n) => (
          <span key={n} class="line">
            {pieces.map(({ words, classes }, k) =>
              classes === '' ? (
                words
              ) : (
                <span key={k} class={classes}>
                  {words}
                </span>
              ),
            )}
            {'\n'}
          </span>
        ))}
      </pre>
    </figure>
  )
}
