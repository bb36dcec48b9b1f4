import { cutText, padText, textWidth, wrapText } from './text.js'

/** A narrower column is not readable. */
const leastWidth = 6
const gap = '  '

/** A Markdown table, from the lines of its header, its ruler and its rows. */
export interface MarkdownTable {
  readonly header: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** The table in lines with bars, the second of which is a ruler; undefined for other lines. */
export function tableIn(lines: readonly string[]): MarkdownTable | undefined {
  const [header, dashes, ...rows] = lines.map(cellsOf)
  const isRuled = dashes !== undefined && dashes.length > 0 && dashes.every(cell => /^:?-+:?$/.test(cell))
  return header && isRuled ? { header, rows } : undefined
}

/** Lines of at most `width` columns. A table with too many columns is shown row by row, with one cell per line. */
export function tableLines(
  { header, rows }: MarkdownTable,
  width: number,
  paint: (name: 'bold' | 'dim', text: string) => string,
): string[] {
  const count = Math.max(header.length, ...rows.map(row => row.length))
  const all = [header, ...rows].map(row => Array.from({ length: count }, (_, at) => row[at] ?? ''))
  const widths = Array.from({ length: count }, (_, at) => Math.max(1, ...all.map(row => textWidth(row[at] ?? ''))))
  if (!fit(widths, width)) return records(all, width, paint)
  const lined = (row: readonly string[], style?: 'bold') => {
    const cells = row.map((cell, at) => broken(cell, widths[at] ?? 1))
    const height = Math.max(1, ...cells.map(lines => lines.length))
    return Array.from({ length: height }, (_, line) => {
      const parts = cells.map((lines, at) => padText(lines[line] ?? '', widths[at] ?? 1))
      const text = parts.join(gap).trimEnd()
      return style && text !== '' ? paint(style, text) : text
    })
  }
  const [first = [], ...others] = all
  const rule = paint('dim', widths.map(columns => '─'.repeat(columns)).join(gap))
  return [...lined(first, 'bold'), rule, ...others.flatMap(row => lined(row))]
}

/** Narrows the widest columns until all fit; false when they cannot. */
function fit(widths: number[], width: number): boolean {
  const room = width - gap.length * (widths.length - 1)
  let total = widths.reduce((sum, one) => sum + one, 0)
  while (total > room) {
    const widest = Math.max(...widths)
    if (widest <= leastWidth) return false
    const next = Math.max(leastWidth, ...widths.filter(one => one < widest))
    const wide = widths.flatMap((one, at) => (one === widest ? [at] : []))
    const less = Math.max(1, Math.min(widest - next, Math.floor((total - room) / wide.length)))
    for (const at of wide) {
      if (total <= room) break
      widths[at] = widest - less
      total -= less
    }
  }
  return true
}

function records(
  [header = [], ...rows]: readonly (readonly string[])[],
  width: number,
  paint: (name: 'bold' | 'dim', text: string) => string,
): string[] {
  return rows.flatMap((row, number) => [
    ...(number > 0 ? [''] : []),
    ...row.flatMap((cell, at) => {
      const name = cutText(header[at] ?? '', Math.max(leastWidth, Math.floor(width / 2)))
      const [first = '', ...more] = broken(cell, Math.max(leastWidth, width - textWidth(name) - 2))
      return [`${paint('bold', name)}: ${first}`, ...more.map(line => `  ${line}`)]
    }),
  ])
}

/** Lines of a cell; a word wider than the column is broken. */
function broken(text: string, width: number): string[] {
  return wrapText(text, width).flatMap(line => {
    const lines: string[] = []
    let rest = line
    while (textWidth(rest) > width) {
      // The last column of a cut text is an ellipsis, which is removed.
      const head = cutText(rest, width + 1).slice(0, -1)
      if (head === '') break
      lines.push(head)
      rest = rest.slice(head.length)
    }
    return [...lines, rest]
  })
}

/** Cells of a line, without emphasis marks, which would waste their limited width. */
function cellsOf(line: string): string[] {
  const inner = line
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '')
  return inner.split(/(?<!\\)\|/).map(cell =>
    cell
      .trim()
      .replaceAll('\\|', '|')
      .replace(/\*\*([^*]+)\*\*/g, '$1')
      .replace(/(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])/g, '$1')
      .replace(/`([^`]+)`/g, '$1')
      .replace(/!?\[([^\][]*)\]\(([^()\s]+)\)/g, (_, label: string, url: string) =>
        label === '' || label === url ? url : `${label} (${url})`,
      ),
  )
}
