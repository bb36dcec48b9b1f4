import type { Cell } from './screen.js'

/** A state of the terminal and its duration. */
export interface Frame {
  readonly lines: readonly (readonly Cell[])[]
  /** Milliseconds. */
  readonly ms: number
}

const char = { width: 8.4, height: 18 }
const margin = { x: 14, top: 40, bottom: 14 }
/** Milliseconds that the last frame is shown before the animation restarts. */
const lastMs = 6000
const colours: Readonly<Record<string, string>> = {
  '1': 'font-weight="bold"',
  '2': 'opacity="0.6"',
  '31': 'fill="#f47067"',
  '32': 'fill="#8ddb8c"',
  '33': 'fill="#daaa3f"',
  '34': 'fill="#6cb6ff"',
  '35': 'fill="#dcbdfb"',
  '36': 'fill="#76e3ea"',
}

/** An animated SVG of a terminal without scripts or embedded fonts: each distinct line is stored once, and frames refer to it. */
export function svgOf(frames: readonly Frame[], columns: number, rows: number, title: string): string {
  const width = Math.ceil(columns * char.width + 2 * margin.x)
  const height = rows * char.height + margin.top + margin.bottom
  const lines = new Map<string, string>()
  const idOf = (cells: readonly Cell[]) => {
    const text = lineText(cells)
    if (!lines.has(text)) lines.set(text, `l${lines.size}`)
    return lines.get(text)
  }
  const total = frames.reduce((sum, { ms }) => sum + ms, 0) + lastMs
  let at = 0
  const groups = frames.map(({ lines, ms }, i) => {
    const uses = lines.flatMap((cells, row) =>
      cells.length === 0 ? [] : [`<use href="#${idOf(cells)}" y="${margin.top + (row + 1) * char.height - 5}"/>`],
    )
    const [from, to] = [percent(at, total), i === frames.length - 1 ? 100 : percent(at + ms, total)]
    at += ms
    const begin = from === 0 ? '' : '0%{visibility:hidden}'
    const end = to === 100 ? '' : `${to}%{visibility:hidden}`
    const keys = `@keyframes k${i}{${begin}${from}%{visibility:visible}${end}}`
    const rule = `#f${i}{animation:k${i} ${(total / 1000).toFixed(1)}s step-end infinite}${keys}`
    return { rule, group: `<g id="f${i}" class="f">${uses.join('')}</g>` }
  })
  const defs = [...lines].map(([text, id]) => `<text id="${id}" x="${margin.x}" xml:space="preserve">${text}</text>`)
  // Without animation only the last frame is visible.
  const still = `#f${frames.length - 1}{visibility:visible}`
  const moving = `@media (prefers-reduced-motion:no-preference){\n${groups.map(({ rule }) => rule).join('\n')}\n}`
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">
<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#adbac7}.f{visibility:hidden}
${still}
${moving}</style>
<rect width="${width}" height="${height}" rx="8" fill="#22272e"/>
<circle cx="20" cy="18" r="6" fill="#f47067"/><circle cx="40" cy="18" r="6" fill="#daaa3f"/><circle cx="60" cy="18" r="6" fill="#8ddb8c"/>
<defs>
${defs.join('\n')}
</defs>
${groups.map(({ group }) => group).join('\n')}
</svg>
`
}

const percent = (ms: number, total: number) => Number(((100 * ms) / total).toFixed(2))

/** Text runs of one style, with a fixed width that does not depend on the font. */
function lineText(cells: readonly Cell[]): string {
  const runs: { text: string; style: string; column: number }[] = []
  cells.forEach(({ char, style }, column) => {
    const last = runs.at(-1)
    if (last?.style === style) last.text += char
    else runs.push({ text: char, style, column })
  })
  return runs
    .filter(({ text }) => text.trim() !== '')
    .map(({ text, style, column }) => {
      const looks = style.split(';').flatMap(code => colours[code] ?? [])
      const x = (margin.x + column * char.width).toFixed(1)
      const length = ([...text].length * char.width).toFixed(1)
      return `<tspan ${[`x="${x}"`, `textLength="${length}"`, ...looks].join(' ')}>${escaped(text)}</tspan>`
    })
    .join('')
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
