import { text } from '../../text.js'

interface FileDiff {
  readonly path: string
  readonly lines: readonly (readonly [sign: ' ' | '+' | '-', line: string])[]
}

/** Lines of a change that are shown. */
const MOST_LINES = 400

/** The changes of files that a tool reports with its result. */
export function diffsOf(output: unknown): FileDiff[] {
  const { content } = Object(output) as { content?: unknown }
  return (Array.isArray(content) ? content : []).flatMap(item => {
    const { type, path, oldText, newText, old_text: oldOne, new_text: newOne } = Object(item) as Record<string, unknown>
    if (type !== 'diff' || typeof path !== 'string') return []
    return [{ path, lines: changed(String(oldText ?? oldOne ?? ''), String(newText ?? newOne ?? '')) }]
  })
}

/** The lines between the parts that begin and end alike: short, and always right. */
function changed(before: string, after: string): FileDiff['lines'] {
  const [a, b] = [before === '' ? [] : before.split('\n'), after.split('\n')]
  let start = 0
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++
  let end = 0
  while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const context = (lines: readonly string[]) => lines.map(line => [' ', line] as const)
  return [
    ...context(a.slice(Math.max(0, start - 3), start)),
    ...a.slice(start, a.length - end).map(line => ['-', line] as const),
    ...b.slice(start, b.length - end).map(line => ['+', line] as const),
    ...context(a.slice(a.length - end, a.length - end + 3)),
  ]
}

/** The signs of a patch in text form, one line each. */
export const patchLines = (patch: string): FileDiff['lines'] =>
  patch
    .split('\n')
    .filter(line => !/^(?:---|\+\+\+|@@|\\)/.test(line) && line !== '')
    .map(line => [/^[+-]/.test(line) ? (line[0] as '+' | '-') : ' ', line.slice(1)] as const)

const CLASSES = { ' ': 'same', '+': 'added', '-': 'removed' } as const

export function Diff({ path, lines }: FileDiff) {
  return (
    <figure class="diff">
      <figcaption>{path}</figcaption>
      <pre tabIndex={0} role="region" aria-label={`${text.details}: ${path}`}>
        {lines.slice(0, MOST_LINES).map(([sign, line], n) => (
          <span key={n} class={CLASSES[sign]}>{`${sign} ${line}\n`}</span>
        ))}
        {lines.length > MOST_LINES && <span class="same">…</span>}
      </pre>
    </figure>
  )
}
