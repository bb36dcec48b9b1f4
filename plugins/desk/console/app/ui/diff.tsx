import { useEffect, useMemo, useState } from 'preact/hooks'
import { text } from '../text.js'
import type { Line, Sign } from './compare.js'
import { Loading } from './parts.js'
import { patchLines } from './patch.js'

export interface FileDiff {
  readonly path: string
  readonly before: string
  readonly after: string
}

/** Maximum number of displayed lines of a change. */
const MOST_LINES = 400

/** The file changes in the result of a tool. */
export function diffsOf(output: unknown): FileDiff[] {
  const { content } = Object(output) as { content?: unknown }
  return (Array.isArray(content) ? content : []).flatMap(item => {
    const { type, path, oldText, newText, old_text: oldOne, new_text: newOne } = Object(item) as Record<string, unknown>
    if (type !== 'diff' || typeof path !== 'string') return []
    return [{ path, before: String(oldText ?? oldOne ?? ''), after: String(newText ?? newOne ?? '') }]
  })
}

/** The difference of two texts. The code of the comparison is loaded on first use. */
export function Diff({ path, before, after }: FileDiff) {
  const [lines, set] = useState<readonly (Line | undefined)[]>()
  useEffect(() => {
    let isOver = false
    void import('./compare.js').then(({ compare }) => isOver || set(compare(before, after)))
    return () => {
      isOver = true
    }
  }, [before, after])
  return lines ? <Lines path={path} lines={lines} /> : <Loading />
}

/** A change in patch format. */
export function Patch({ path, patch }: { readonly path: string; readonly patch: string }) {
  const lines = patch
    .split('\n')
    .filter(line => !/^(?:---|\+\+\+|@@|\\)/.test(line) && line !== '')
    .map((line): Line => ({ sign: /^[+-]/.test(line) ? (line[0] as Sign) : ' ', words: line.slice(1) }))
  return <Lines path={path} lines={lines} />
}

/** A git patch, with line numbers. */
export function GitPatch({ path, patch }: { readonly path: string; readonly patch: string }) {
  const lines = useMemo(() => patchLines(patch), [patch])
  return <Lines path={path} lines={lines} />
}

const CLASSES = { ' ': 'same', '+': 'added', '-': 'removed' } as const

function Lines({ path, lines }: { readonly path: string; readonly lines: readonly (Line | undefined)[] }) {
  const digits = String(Math.max(0, ...lines.map(line => line?.after ?? line?.before ?? 0))).length
  const numbered = ({ before, after }: Line) =>
    before === undefined && after === undefined ? '' : `${String(after ?? before).padStart(digits)} `
  return (
    <figure class="diff">
      <figcaption>{path}</figcaption>
      <pre tabIndex={0} role="region" aria-label={`${text.details}: ${path}`}>
        {lines.slice(0, MOST_LINES).map((line, n) =>
          line ? (
            <span key={n} class={CLASSES[line.sign]}>{`${numbered(line)}${line.sign} ${line.words}\n`}</span>
          ) : (
            <span key={n} class="gap">
              {'⋯\n'}
            </span>
          ),
        )}
        {lines.length > MOST_LINES && <span class="same">…</span>}
      </pre>
    </figure>
  )
}
