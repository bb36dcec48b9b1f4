/** A part of a line, with its colour classes. */
export interface Piece {
  readonly words: string
  readonly classes: string
}

/** Maximum number of lines, counted from the end. */
const MOST_LINES = 1000
/** Maximum number of cells of a line. */
const MOST_CELLS = 2000
const COLORS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const

interface Style {
  readonly bold?: boolean
  readonly dim?: boolean
  readonly italic?: boolean
  readonly underline?: boolean
  readonly color?: string | undefined
}

const classesOf = ({ bold, dim, italic, underline, color }: Style): string =>
  [bold && 'bold', dim && 'dim', italic && 'italic', underline && 'underline', color].filter(Boolean).join(' ')

/**
 * Applies Select Graphic Rendition codes. Backgrounds and colours beyond the sixteen are ignored, because one of the themes could
 * make them unreadable.
 */
function styled(before: Style, codes: readonly number[]): Style {
  let style = before
  for (let n = 0; n < codes.length; n++) {
    const code = codes[n] ?? 0
    if (code === 0) style = {}
    else if (code === 1) style = { ...style, bold: true }
    else if (code === 2) style = { ...style, dim: true }
    else if (code === 3) style = { ...style, italic: true }
    else if (code === 4) style = { ...style, underline: true }
    else if (code === 22) style = { ...style, bold: false, dim: false }
    else if (code === 23) style = { ...style, italic: false }
    else if (code === 24) style = { ...style, underline: false }
    else if (code >= 30 && code <= 37) style = { ...style, color: COLORS[code - 30] }
    else if (code >= 90 && code <= 97) style = { ...style, color: COLORS[code - 90] }
    else if (code === 39) style = { ...style, color: undefined }
    else if (code === 38 || code === 48) n += codes[n + 1] === 2 ? 4 : 2
  }
  return style
}

const TOKEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are made of those
  /\u001b\[([0-9;?]*)([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b.|[\u0000-\u001f\u007f]|[^\u0000-\u001f\u007f]+/g

/**
 * The last lines of terminal output, without overwritten text. The cursor moves only within a line, so the output of full-screen
 * programs appears as separate lines.
 */
export function terminalLines(output: string): Piece[][] {
  const lines: { words: string; classes: string }[][] = [[]]
  let style: Style = {}
  let column = 0
  const line = () => lines[lines.length - 1] ?? []
  for (const [token, parameters = '', end] of output.matchAll(TOKEN)) {
    if (token === '\n') {
      lines.push([])
      if (lines.length > MOST_LINES) lines.shift()
      column = 0
    } else if (token === '\r') column = 0
    else if (token === '\b') column = Math.max(0, column - 1)
    else if (token === '\t') column = Math.min(MOST_CELLS, (Math.floor(column / 8) + 1) * 8)
    else if (end === 'm') style = styled(style, parameters.split(';').map(Number))
    else if (end === 'K') {
      if (parameters === '2') line().splice(0)
      else line().splice(column)
    } else if (end === 'G') column = Math.min(MOST_CELLS, Math.max(0, Number(parameters || 1) - 1))
    else if (token >= ' ' && !token.startsWith('\u007f')) {
      const classes = classesOf(style)
      const cells = line()
      for (const words of token) {
        if (column >= MOST_CELLS) break
        while (cells.length < column) cells.push({ words: ' ', classes: '' })
        cells[column++] = { words, classes }
      }
    }
  }
  return lines.map(cells => {
    const pieces: { words: string; classes: string }[] = []
    for (const { words, classes } of cells) {
      const last = pieces.at(-1)
      if (last?.classes === classes) last.words += words
      else pieces.push({ words, classes })
    }
    return pieces
  })
}
