import { api } from '../../core/api.js'
import { useResource } from '../../core/resource.js'
import { linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Badge, Empty, Loading, Problem } from '../../ui/parts.js'
import type { Task } from './index.js'
import { placeInLayers } from './layers.js'

const words = text.graph

const WIDTH = 190
const HEIGHT = 52
const GAP_X = 64
const GAP_Y = 18
/** Maximum number of tasks whose dependencies are loaded. */
const MOST_READ = 100

/** The dependency graph of tasks, from left to right. The list below it is its text form. */
export function Graph({ tasks, selected }: { readonly tasks: readonly Task[]; readonly selected: string | undefined }) {
  const dependent = tasks.filter(({ dependency_count: count = 0 }) => count > 0).slice(0, MOST_READ)
  // The list of tasks contains only the number of dependencies, a task their ids.
  const { data, error, reload } = useResource(
    signal =>
      Promise.all(
        dependent.map(async ({ id }) => {
          const { task } = await api('GET /api/tasks/{id}', { path: { id } }, signal)
          return (task.dependencies ?? []).map(({ depends_on_task_id: from }) => ({ from, to: id }))
        }),
      ),
    [dependent.map(({ id, dependency_count: count }) => `${id} ${count}`)],
    /^task\./,
  )
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  const byId = new Map(tasks.map(task => [task.id, task]))
  const edges = data.flat().filter(({ from }) => byId.has(from))
  const linked = new Set(edges.flatMap(({ from, to }) => [from, to]))
  const shown = tasks.filter(({ id }) => linked.has(id))
  if (shown.length === 0) return <Empty>{words.none}</Empty>
  const places = placeInLayers(
    shown.map(({ id }) => id),
    edges,
  )
  const at = new Map(
    places.map(({ id, layer, row }) => [id, { x: layer * (WIDTH + GAP_X) + 2, y: row * (HEIGHT + GAP_Y) + 2 }]),
  )
  const width = Math.max(...places.map(({ layer }) => layer)) * (WIDTH + GAP_X) + WIDTH + 4
  const height = Math.max(...places.map(({ row }) => row)) * (HEIGHT + GAP_Y) + HEIGHT + 4
  return (
    <>
      <div class="graph" tabIndex={0} role="region" aria-label={words.title}>
        <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label={words.title}>
          <clipPath id="node-text">
            <rect width={WIDTH - 10} height={HEIGHT} />
          </clipPath>
          {edges.map(({ from, to }) => {
            const [a, b] = [at.get(from), at.get(to)]
            if (!a || !b) return null
            const [x1, y1, x2, y2] = [a.x + WIDTH, a.y + HEIGHT / 2, b.x, b.y + HEIGHT / 2]
            const bend = Math.max(24, (x2 - x1) / 2)
            const isSettled = byId.get(from)?.status === 'completed'
            return (
              <path
                key={`${from} ${to}`}
                class={isSettled ? 'edge settled' : 'edge'}
                d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`}
              />
            )
          })}
          {shown.map(task => {
            const { x, y } = at.get(task.id) ?? { x: 0, y: 0 }
            return (
              <a
                key={task.id}
                href={linkTo('work', 'graph', task.id)}
                class={`node ${task.status}`}
                aria-current={task.id === selected ? 'true' : undefined}
              >
                <rect x={x} y={y} width={WIDTH} height={HEIGHT} rx={8} />
                {/* The picture cuts a long title; the accessible name of the link is complete. */}
                <g transform={`translate(${x} ${y})`} clip-path="url(#node-text)">
                  <text x={12} y={22} class="node-title">
                    {task.title}
                  </text>{' '}
                  <text x={12} y={40} class="node-status">
                    {task.status.replaceAll('_', ' ')}
                  </text>
                </g>
              </a>
            )
          })}
        </svg>
      </div>
      <section aria-labelledby="as-list">
        <h2 id="as-list">{words.list}</h2>
        <ul class="rows">
          {shown.map(task => {
            const needs = edges.flatMap(({ from, to }) => (to === task.id ? (byId.get(from) ?? []) : []))
            return (
              <li key={task.id}>
                <a href={linkTo('work', 'graph', task.id)}>{task.title}</a>
                <Badge of={task.status} />
                {needs.length > 0 && (
                  <span class="muted">{words.waitsFor(needs.map(({ title }) => title).join(', '))}</span>
                )}
              </li>
            )
          })}
        </ul>
      </section>
    </>
  )
}
