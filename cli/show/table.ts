import type { CliColumn } from '../../kernel/kit/annotations/index.js'
import { cellText, pick } from './cells.js'
import { cleanText, cutText, padText, textWidth, wrapSentence, wrapText } from './text.js'

const gap = 2
/** Indent of values below a row. */
const indent = 4
/** Minimum width of a column while another one is wider. */
const minWidth = 6
/** Maximum width of a cell even in unlimited output, because other rows are padded to it. */
const maxCell = 1000

export interface TableStyle {
  /** Columns of the terminal; Infinity for unlimited lines. */
  readonly width: number
  /** Milliseconds since 1970, for relative times. */
  readonly now: number
  readonly header?: (text: string) => string
}

/**
 * Lines of a table. A table wider than the terminal loses its empty columns; then values that must be whole move below their rows,
 * unless there is room next to them; then the widest columns are cut, the first column last. IDs, kinds and statuses are never
 * cut: without room for them other columns move below the row, the last one first.
 */
export function renderTable(rows: readonly unknown[], columns: readonly CliColumn[], style: TableStyle): string[] {
  const fits = (some: readonly CliColumn[]) => naturalWidth(rows, some, style) <= style.width
  if (style.width === Number.POSITIVE_INFINITY || fits(columns)) return renderGrid(rows, columns, style)
  const filled = columns.filter(column => rows.some(row => cellText(row, column, style.now) !== '-'))
  if (filled.length === 0 || fits(filled)) return renderGrid(rows, filled, style)
  const wanted = filled.filter(({ below }) => !below)
  const visible = withinWidth(rows, wanted.length === 0 ? filled : wanted, style)
  const below = wanted.length === 0 ? [] : filled.filter(column => column.below)
  const moved = wanted.filter(column => !visible.includes(column))
  const [header = '', ...lines] = renderGrid(rows, visible, style)
  const edge = Math.max(...lines.map(textWidth)) + gap
  return [header, ...lines.flatMap((line, i) => withBelow(line, rows[i], { below, moved, edge }, style))]
}

/** Columns that fit side by side with every ID and status uncut. */
function withinWidth(rows: readonly unknown[], columns: readonly CliColumn[], style: TableStyle): CliColumn[] {
  const visible = [...columns]
  const widths = new Map(columns.map(column => [column, widthsOf(rows, column, style)]))
  const least = () =>
    visible.reduce((sum, column) => sum + (widths.get(column)?.least ?? 0), 0) + gap * (visible.length - 1)
  while (visible.length > 1 && least() > style.width) {
    const movable = visible.findLastIndex((column, i) => i > 0 && !isWhole(column))
    visible.splice(movable > 0 ? movable : visible.length - 1, 1)
  }
  return visible
}

/** A cut ID, kind or class is no argument for another command, and a status has the most important information. */
const isWhole = ({ path }: CliColumn) => /(?:^|[._])(?:id|status|state|kind|class)$/.test(path)

function widthsOf(rows: readonly unknown[], column: CliColumn, { now }: TableStyle) {
  const header = textWidth(column.header)
  const natural = rows.reduce<number>((most, row) => Math.max(most, textWidth(cellText(row, column, now))), header)
  return { natural, least: isWhole(column) ? natural : Math.min(natural, Math.max(minWidth, header)) }
}

/**
 * Adds the values of columns that did not fit into a line. The first value has no label and is appended at column `edge` if
 * there is room; the others follow on lines of their own, with their headers as labels.
 */
function withBelow(
  line: string,
  row: unknown,
  {
    below,
    moved,
    edge,
  }: { readonly below: readonly CliColumn[]; readonly moved: readonly CliColumn[]; readonly edge: number },
  { width, now }: TableStyle,
): string[] {
  const textOf = (column: CliColumn) => cutText(cellText(row, column, now), maxCell)
  const first = below[0] === undefined ? '-' : textOf(below[0])
  const hasRoom = first !== '-' && edge + textWidth(first) <= width
  const named = (column: CliColumn) => `${column.header.toLowerCase()}: ${textOf(column)}`
  const rest = [
    ...moved.flatMap(column => (textOf(column) === '-' ? [] : [cutText(named(column), width - indent)])),
    ...below.flatMap((column, i) => {
      const text = textOf(column)
      if (text === '-' || (i === 0 && hasRoom)) return []
      return wrapText(i === 0 ? text : named(column), width - indent)
    }),
  ]
  return [hasRoom ? padText(line, edge) + first : line, ...rest.map(text => ' '.repeat(indent) + text)]
}

function naturalWidth(rows: readonly unknown[], columns: readonly CliColumn[], style: TableStyle): number {
  const widest = columns.map(column => widthsOf(rows, column, style).natural)
  return widest.reduce((sum, one) => sum + one, 0) + gap * (columns.length - 1)
}

function renderGrid(rows: readonly unknown[], columns: readonly CliColumn[], style: TableStyle): string[] {
  const cells = rows.map(row => columns.map(column => cutText(cellText(row, column, style.now), maxCell)))
  const headers = columns.map(column => column.header.toUpperCase())
  const widths = headers.map((header, i) =>
    cells.reduce((width, row) => Math.max(width, textWidth(row[i] as string)), textWidth(header)),
  )
  const fitted = fitWidths(
    widths,
    style.width,
    columns.map((column, i) => (isWhole(column) ? (widths[i] as number) : minWidth)),
  )
  const line = (texts: readonly string[]) =>
    cutText(
      texts
        .map((text, i) =>
          padText(cutText(text, fitted[i] as number), i === texts.length - 1 ? 0 : (fitted[i] as number)),
        )
        .join(' '.repeat(gap))
        .trimEnd(),
      style.width,
    )
  const header = style.header ?? (text => text)
  return [header(line(headers)), ...cells.map(line)]
}

/** Column widths that fit into `total` with their gaps, as far as the minimum widths ({@link minWidth} by default) allow. */
export function fitWidths(widths: readonly number[], total: number, least: readonly number[] = []): number[] {
  const fitted = widths.map(width => Math.min(width, Math.max(total, minWidth)))
  const room = (i: number) => (fitted[i] as number) - (least[i] ?? minWidth)
  let excess = fitted.reduce((sum, width) => sum + width, 0) + gap * (fitted.length - 1) - total
  for (; excess > 0; excess--) {
    // The first column names the row, so it is cut only as a last resort.
    let from = 0
    for (let i = 1; i < fitted.length; i++)
      if (room(i) > 0 && (from === 0 || (fitted[i] as number) >= (fitted[from] as number))) from = i
    if (room(from) <= 0) break
    fitted[from] = (fitted[from] as number) - 1
  }
  return fitted
}

/**
 * Lines of one item: names on the left, whole values on the right, wrapped between words; a multi-line text is below its name. A
 * list wraps between its entries. Missing values have no line.
 */
export function renderFields(item: unknown, fields: readonly CliColumn[], style: TableStyle): string[] {
  const filled = fields.filter(field => cellText(item, field, style.now) !== '-')
  const width = Math.max(0, ...filled.map(field => textWidth(field.header)))
  const header = style.header ?? (text => text)
  return filled.flatMap(field => {
    const value = pick(item, field.path)
    const lines = typeof value === 'string' ? cleanText(value).trim().split('\n') : []
    if (lines.length > 1)
      return [header(field.header), ...indented(lines, isCopied(field) ? Number.POSITIVE_INFINITY : style.width)]
    const text = fieldText(item, field, style.now)
    const room = style.width - width - 2
    const broken = field.as === 'list' ? brokenList(text, room) : isCopied(field) ? [text] : wrapSentence(text, room)
    const [first = '', ...more] = broken
    return [`${header(padText(field.header, width))}  ${first}`, ...more.map(line => ' '.repeat(width + 2) + line)]
  })
}

const indented = (lines: readonly string[], width: number) =>
  lines.flatMap(line => wrapSentence(line, width - 2).map(part => `  ${part}`.trimEnd()))

/** A command or a path is an argument for another program. */
const isCopied = ({ path }: CliColumn) => /(?:^|[._])(?:command|args|path|dir|file|url|cwd|next)$/.test(path)

/** The lines of a list, each as long as possible; an overlong entry stays whole. */
function brokenList(text: string, width: number): string[] {
  const lines: string[] = []
  for (const entry of text.split(/(?<=,) /)) {
    const last = lines.at(-1)
    if (last !== undefined && textWidth(last) + 1 + textWidth(entry) <= width)
      lines[lines.length - 1] = `${last} ${entry}`
    else lines.push(entry)
  }
  return lines
}

/** A time in a field is shown with its age; a table has room for the age only. */
function fieldText(item: unknown, field: CliColumn, now: number): string {
  const ago = field.as === 'time' || field.as === 'ago' ? cellText(item, { ...field, as: 'ago' }, now) : '-'
  const text = cellText(item, ago === '-' ? field : { ...field, as: 'time' }, now)
  return ago === '-' || ago === text ? text : `${text} (${ago})`
}
