import type { Sample } from './series.js'

const [WIDTH, HEIGHT, LEFT, RIGHT, GAP] = [860, 90, 190, 90, 22] as const

const number = (value: number) => (value >= 1000 ? Math.round(value).toLocaleString('en') : value.toFixed(1))
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** An SVG picture with one strip for each series, over the time of the load; the first third, the warm-up, is grey. */
export function plot(samples: readonly Sample[], names: readonly string[]): string {
  const end = samples.at(-1)?.at ?? 1
  const [width, height] = [WIDTH - LEFT - RIGHT, names.length * (HEIGHT + GAP) + 40]
  const strips = names.map((name, n) => {
    const values = samples.map(({ values }) => values[name] ?? 0)
    const most = Math.max(...values, 1)
    const top = n * (HEIGHT + GAP) + 10
    const points = samples.map(({ at }, i) => {
      const [x, y] = [LEFT + (at / end) * width, top + HEIGHT * (1 - (values[i] ?? 0) / most)]
      return `${x.toFixed(1)},${y.toFixed(1)}`
    })
    return [
      `<rect x="${LEFT}" y="${top}" width="${width}" height="${HEIGHT}" fill="#fafafa" stroke="#ccc"/>`,
      `<rect x="${LEFT}" y="${top}" width="${(width / 3).toFixed(1)}" height="${HEIGHT}" fill="#eee"/>`,
      `<text x="${LEFT - 8}" y="${top + HEIGHT / 2}" text-anchor="end">${escaped(name)}</text>`,
      `<text x="${WIDTH - RIGHT + 8}" y="${top + 10}">${number(most)}</text>`,
      `<text x="${WIDTH - RIGHT + 8}" y="${top + HEIGHT}">0</text>`,
      `<polyline fill="none" stroke="#0366d6" stroke-width="1.5" points="${points.join(' ')}"/>`,
    ].join('\n')
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
${strips.join('\n')}
<text x="${LEFT}" y="${height - 12}">0</text>
<text x="${WIDTH - RIGHT}" y="${height - 12}" text-anchor="end">${Math.round(end)} s</text>
</svg>
`
}
