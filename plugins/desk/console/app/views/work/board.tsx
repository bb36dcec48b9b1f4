import { ago } from '../../core/format.js'
import { linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Badge } from '../../ui/parts.js'
import type { Task } from './index.js'

const words = text.work

/** The columns of the board, with the task states in each. */
const lanes: readonly (readonly [keyof typeof words.lanes, readonly Task['status'][]])[] = [
  ['draft', ['draft']],
  ['ready', ['pending', 'ready']],
  ['running', ['in_progress']],
  ['waiting', ['blocked', 'needs_attention']],
  ['done', ['completed', 'failed', 'canceled']],
]

/** Tasks by status. */
export function Board({ tasks, selected }: { readonly tasks: readonly Task[]; readonly selected: string | undefined }) {
  return (
    <div class="board" tabIndex={0} role="region" aria-label={words.title}>
      {lanes.map(([name, statuses]) => (
        <Lane
          key={name}
          title={words.lanes[name]}
          tasks={tasks.filter(task => statuses.includes(task.status))}
          selected={selected}
        />
      ))}
    </div>
  )
}

function Lane({
  title,
  tasks,
  selected,
}: {
  readonly title: string
  readonly tasks: readonly Task[]
  readonly selected: string | undefined
}) {
  return (
    <section class="lane" aria-label={title}>
      <h2>
        {title} <span class="count">{tasks.length}</span>
      </h2>
      {tasks.length === 0 && <p class="muted none">{words.none}</p>}
      <ul>
        {tasks.map(task => (
          <li key={task.id}>
            <a
              class="card task"
              href={linkTo('work', task.id)}
              aria-current={task.id === selected ? 'true' : undefined}
            >
              <strong>{task.title}</strong>
              <span class="meta">
                <Badge of={task.status} />
                {task.priority && task.priority !== 'medium' && <span class="muted">{task.priority}</span>}
                <span class="muted">{ago(task.updated_at)}</span>
              </span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  )
}
