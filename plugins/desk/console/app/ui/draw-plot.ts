import uPlot from 'uplot'

export interface Series {
  readonly label: string
  /** The name of a colour in the style sheet, such as `--accent`. */
  readonly color: string
  readonly values: readonly number[]
}

export interface PlotData {
  /** Days as `2026-11-29`. */
  readonly days: readonly string[]
  /** Stacked from the bottom in this order. */
  readonly series: readonly Series[]
}

const HEIGHT = 150
/** Width of a date label in pixels. */
const LABEL_WIDTH = 56
/** Possible distances of grid lines: integers, because counts have no fractions. */
const STEPS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map(n => n * 10 ** power)).flat()

/** Cumulative sums of the series, which are the heights of stacked bars. */
function stacked(series: readonly Series[]): number[][] {
  const below: number[] = []
  return series.map(({ values }) =>
    values.map((value, n) => {
      below[n] = (below[n] ?? 0) + value
      return below[n]
    }),
  )
}

const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const dayOf = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', timeZone: 'UTC' })

/** Draws the bars of each day into an element. The returned function removes them. */
export function drawPlot(host: HTMLElement, { days, series }: PlotData): () => void {
  const style = getComputedStyle(document.documentElement)
  const colorOf = (name: string) => style.getPropertyValue(name).trim()
  const paint = (name: string) => () => colorOf(name)
  const axis = { stroke: paint('--muted'), grid: { stroke: paint('--line'), width: 1 }, ticks: { show: false } }
  const bars = uPlot.paths.bars?.({ size: [0.7, 24], radius: 0.15 })
  const sums = stacked(series)
  const options: uPlot.Options = {
    width: Math.max(160, host.clientWidth),
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 4, 0, 0],
    scales: {
      x: { time: false, range: [-0.6, days.length - 0.4] },
      y: { range: (_, __, most) => [0, Math.max(1, most * 1.05)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 28,
        splits: self => {
          const every = Math.max(1, Math.ceil((days.length * LABEL_WIDTH) / self.width))
          return days.map((_, n) => n).filter(n => (days.length - 1 - n) % every === 0)
        },
        values: (_, splits) => splits.map(n => dayOf.format(new Date(`${days[n]}T00:00:00Z`))),
      },
      {
        ...axis,
        size: 44,
        incrs: STEPS,
        values: (_, splits) => splits.map(n => short.format(n)),
      },
    ],
    // The tallest bars are drawn first, because later bars cover them.
    series: [
      {},
      ...[...series].reverse().map(({ label, color }) => ({
        label,
        fill: paint(color),
        stroke: paint(color),
        width: 0,
        points: { show: false },
        ...(bars && { paths: bars }),
      })),
    ],
  }
  const plot = new uPlot(options, [days.map((_, n) => n), ...sums.reverse()], host)
  const redraw = () => plot.redraw(false)
  const dark = matchMedia('(prefers-color-scheme: dark)')
  dark.addEventListener('change', redraw)
  const sized = new ResizeObserver(() => plot.setSize({ width: Math.max(160, host.clientWidth), height: HEIGHT }))
  sized.observe(host)
  return () => {
    dark.removeEventListener('change', redraw)
    sized.disconnect()
    plot.destroy()
  }
}
