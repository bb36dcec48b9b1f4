import { useEffect, useRef } from 'preact/hooks'
import { number } from '../core/format.js'
import { text } from '../text.js'
import type { PlotData } from './draw-plot.js'

/** A bar chart of days. The picture is hidden from screen readers; the table below has the same figures. */
export function Plot({ label, data }: { readonly label: string; readonly data: PlotData }) {
  const host = useRef<HTMLDivElement>(null)
  const key = JSON.stringify(data)
  useEffect(() => {
    let remove: (() => void) | undefined
    let isOver = false
    void import('./draw-plot.js').then(
      ({ drawPlot }) => {
        if (!isOver && host.current) remove = drawPlot(host.current, data)
      },
      () => {},
    )
    return () => {
      isOver = true
      remove?.()
    }
  }, [key])
  return (
    <figure class="plot">
      <ul class="legend" aria-hidden="true">
        {data.series.map(({ label: name }, n) => (
          <li key={name} class={`series-${n}`}>
            {name}
          </li>
        ))}
      </ul>
      <div class="plot-canvas" ref={host} aria-hidden="true" />
      <details class="as-table">
        <summary>{text.plots.table(label)}</summary>
        <div class="table" tabIndex={0} role="region" aria-label={label}>
          <table>
            <thead>
              <tr>
                <th scope="col">{text.plots.day}</th>
                {data.series.map(({ label: name }) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {data.days.map((day, n) => (
                <tr key={day}>
                  <th scope="row">{day}</th>
                  {data.series.map(({ label: name, values }) => (
                    <td key={name}>{number.format(values[n] ?? 0)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  )
}
