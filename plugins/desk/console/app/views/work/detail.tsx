import { useState } from 'preact/hooks'
import { api } from '../../core/api.js'
import { ago } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { go, linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Markdown } from '../../ui/markdown.js'
import { Action, Badge, Command, Empty, Fields, Loading, Problem } from '../../ui/parts.js'
import type { Task } from './index.js'

const words = text.work
type Status = Task['status']

/** The possible actions on a task in each state. */
function Actions({
  id,
  status,
  waits,
  changed,
}: {
  readonly id: string
  readonly status: Status
  readonly waits: boolean
  readonly changed: () => void
}) {
  const then = (run: () => Promise<unknown>) => async () => {
    await run()
    changed()
  }
  const at = { path: { id } }
  return (
    <div class="actions">
      {status === 'draft' && (
        <Action
          label={words.actions.publish}
          tone="primary"
          run={then(() => api('POST /api/tasks/{id}/publish', at))}
        />
      )}
      {waits && (
        <Action
          label={words.actions.approve}
          tone="primary"
          run={then(() => api('POST /api/tasks/{id}/approve', at))}
        />
      )}
      {waits && <Action label={words.actions.reject} run={then(() => api('POST /api/tasks/{id}/reject', at))} />}
      {['pending', 'ready'].includes(status) && !waits && (
        <Action label={words.actions.start} tone="primary" run={then(() => api('POST /api/tasks/{id}/start', at))} />
      )}
      {!['completed', 'failed', 'canceled'].includes(status) && (
        <Action label={words.actions.cancel} tone="danger" run={then(() => api('POST /api/tasks/{id}/cancel', at))} />
      )}
    </div>
  )
}

/** A task: its dependencies and its runs. */
export function Detail({
  id,
  tasks,
  back,
  changed,
}: {
  readonly id: string
  /** Tasks that may become its dependencies. */
  readonly tasks: readonly Task[]
  /** The address after closing. */
  readonly back: readonly string[]
  readonly changed: () => void
}) {
  const { data, error, reload } = useResource(
    signal => api('GET /api/tasks/{id}', { path: { id } }, signal),
    [id],
    /^task\./,
  )
  const both = () => {
    reload()
    changed()
  }
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  const { task, why, next_action: next, runs = [], dependency_references: needs = [] } = data.task
  return (
    <div class="detail">
      <header>
        <h2>{task.title}</h2>
        <button type="button" class="quiet" onClick={() => go(...back)}>
          {text.close}
        </button>
      </header>
      <Command line={`svc task get ${task.id}`} />
      <Actions id={id} status={task.status} waits={task.approval_state === 'pending'} changed={both} />
      <Fields
        of={[
          [words.status, <Badge of={task.status} />],
          [words.priority, task.priority],
          [words.nextAction, next],
          [words.why, why],
          [words.created, ago(task.created_at)],
        ]}
      />
      {task.description && (
        <>
          <h3>{words.description}</h3>
          <Markdown source={task.description} />
        </>
      )}
      <Needs id={id} needs={needs.map(({ depends_on: one }) => one)} tasks={tasks} changed={both} />
      <h3>{words.runs}</h3>
      {runs.length === 0 && <Empty>{words.noRuns}</Empty>}
      <ul class="rows">
        {runs.map(run => (
          <li key={run.id}>
            <a href={linkTo('work', 'runs', run.id)}>
              {words.attempt} {run.attempt}
            </a>
            <Badge of={run.status} />
            <span class="muted">{ago(run.ended_at ?? run.started_at ?? run.queued_at)}</span>
            {run.session_id && <a href={linkTo('sessions', run.session_id)}>{text.sessions.name}</a>}
            {run.error && <p class="muted clip">{run.error}</p>}
          </li>
        ))}
      </ul>
    </div>
  )
}

/** The tasks that must be completed first. */
function Needs({
  id,
  needs,
  tasks,
  changed,
}: {
  readonly id: string
  readonly needs: readonly Pick<Task, 'id' | 'title' | 'status'>[]
  readonly tasks: readonly Task[]
  readonly changed: () => void
}) {
  const [chosen, choose] = useState('')
  const known = new Set([id, ...needs.map(need => need.id)])
  const others = tasks.filter(task => !known.has(task.id))
  const then = (run: () => Promise<unknown>) => async () => {
    await run()
    choose('')
    changed()
  }
  return (
    <>
      <h3>{text.graph.needs}</h3>
      <ul class="rows">
        {needs.map(need => (
          <li key={need.id}>
            <a href={linkTo('work', need.id)}>{need.title}</a>
            <Badge of={need.status} />
            <Action
              label={text.graph.remove}
              run={then(() =>
                api('DELETE /api/tasks/{id}/dependencies/{depends_on_id}', { path: { id, depends_on_id: need.id } }),
              )}
            />
          </li>
        ))}
      </ul>
      {others.length > 0 && (
        <div class="add-need">
          <label>
            {text.graph.other}
            <select value={chosen} onChange={event => choose(event.currentTarget.value)}>
              <option value="">{text.graph.choose}</option>
              {others.map(task => (
                <option key={task.id} value={task.id}>
                  {task.title}
                </option>
              ))}
            </select>
          </label>
          <Action
            label={text.graph.add}
            run={then(async () => {
              if (chosen === '') return
              await api('POST /api/tasks/{id}/dependencies', { path: { id }, body: { depends_on_task_id: chosen } })
            })}
          />
        </div>
      )}
    </>
  )
}
