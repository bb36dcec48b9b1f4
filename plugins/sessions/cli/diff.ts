/** A line of a diff: what went, what came, what stayed. */
export interface DiffLine {
  readonly sign: '-' | '+' | ' '
  readonly text: string
}

/** Lines on either side beyond which no common lines are looked for: the work grows with their product. */
const mostCompared = 400
const context = 2

/** How a text becomes another one, line by line; of what stayed only the lines beside a change. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [old, fresh] = [linesOf(before), linesOf(after)]
  let head = 0
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head++
  let tail = 0
  while (tail < Math.min(old.length, fresh.length) - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail++
  const stays = (lines: readonly string[]) => lines.map((text): DiffLine => ({ sign: ' ', text }))
  const middle = changes(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail))
  if (middle.length === 0) return []
  const end = old.length - tail
  return [...stays(old.slice(Math.max(0, head - context), head)), ...middle, ...stays(old.slice(end, end + context))]
}

function linesOf(text: string): string[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

/** By the longest common subsequence; where that is too much work, everything goes and everything comes. */
function changes(old: readonly string[], fresh: readonly string[]): DiffLine[] {
  const goes = (text: string): DiffLine => ({ sign: '-', text })
  const comes = (text: string): DiffLine => ({ sign: '+', text })
  if (old.length > mostCompared || fresh.length > mostCompared) return [...old.map(goes), ...fresh.map(comes)]
  const lengths = Array.from({ length: old.length + 1 }, () => new Uint16Array(fresh.length + 1))
  const at = (i: number, j: number) => lengths[i]?.[j] ?? 0
  for (let i = old.length - 1; i >= 0; i--) {
    const row = lengths[i] as Uint16Array
    for (let j = fresh.length - 1; j >= 0; j--) {
      row[j] = old[i] === fresh[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const lines: DiffLine[] = []
  for (let i = 0, j = 0; i < old.length || j < fresh.length; ) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      lines.push({ sign: ' ', text: old[i++] as string })
      j++
    } else if (i < old.length && (j >= fresh.length || at(i + 1, j) >= at(i, j + 1)))
      lines.push(goes(old[i++] as string))
    else lines.push(comes(fresh[j++] as string))
  }
  return lines
}
