import { useState } from 'preact/hooks'
import { api, type ReplyOf } from '../core/api.js'
import { ago } from '../core/format.js'
import { useResource } from '../core/resource.js'
import { go, linkTo, place } from '../core/router.js'
import { text } from '../text.js'
import { Columns } from '../ui/columns.js'
import { Markdown } from '../ui/markdown.js'
import { Action, Badge, Command, Empty, Fields, Loading, Page, Problem } from '../ui/parts.js'
import { WorkspaceChoice } from '../ui/workspace-choice.js'

type Task = ReplyOf<'GET /api/tasks'>['tasks'][number]
type Status = Task['status']

const words = text.work

/** Columns of the board with the states of their tasks. */
const lanes: readonly (readonly [keyof typeof words.lanes, readonly Status[]])[] = [
  ['draft', ['draft']],
  ['ready', ['pending', 'ready']],
  ['running', ['in_progress']],
  ['waiting', ['blocked', 'needs_attention']],
  ['done', ['completed', 'failed', 'canceled']],
]

/** The task board. */
export function Work() {
  const [, selected] = place.value
  const { data, error, reload } = useResource(
    signal => api('GET /api/tasks', { query: { scope: 'all', include_drafts: true, limit: 200 } }, signal),
    [],
    /^task\./,
  )
  const [isOpen, setOpen] = useState(false)
  const aside = isOpen ? (
    <NewTask
      done={id => {
        setOpen(false)
        reload()
        if (id) go('work', id)
      }}
    />
  ) : selected ? (
    <Detail key={selected} id={selected} changed={reload} />
  ) : undefined
  return (
    <Columns aside={aside}>
      <Page
        title={words.title}
        command="svc task board"
        actions={
          <button type="button" class="primary" onClick={() => setOpen(true)}>
            {words.create}
          </button>
        }
      >
        <Problem error={error} retry={reload} />
        {!data && error === undefined && <Loading />}
        {data && (
          <div class="board" tabIndex={0} role="region" aria-label={words.title}>
            {lanes.map(([name, statuses]) => (
              <Lane
                key={name}
                title={words.lanes[name]}
                tasks={data.tasks.filter(task => statuses.includes(task.status))}
                selected={selected}
              />
            ))}
          </div>
        )}
      </Page>
    </Columns>
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

/** Actions of a person on a task in each state. */
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

function Detail({ id, changed }: { readonly id: string; readonly changed: () => void }) {
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
  const { task, why, next_action: next, runs = [] } = data.task
  return (
    <div class="detail">
      <header>
        <h2>{task.title}</h2>
        <button type="button" class="quiet" onClick={() => go('work')}>
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
      <h3>{words.runs}</h3>
      {runs.length === 0 && <Empty>{words.noRuns}</Empty>}
      <ul class="rows">
        {runs.map(run => (
          <li key={run.id}>
            <span>
              {words.attempt} {run.attempt}
            </span>
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

function NewTask({ done }: { readonly done: (id?: string) => void }) {
  const [title, setTitle] = useState('')
  const [isDraft, setDraft] = useState(true)
  const [workspace, setWorkspace] = useState('')
  const create = async () => {
    const scope = workspace === '' ? ('global' as const) : ('workspace' as const)
    const body = { title, scope, draft: isDraft, ...(workspace !== '' && { workspace }) }
    done((await api('POST /api/tasks', { body })).task.id)
  }
  return (
    <form class="detail" onSubmit={event => event.preventDefault()}>
      <header>
        <h2>{words.create}</h2>
        <button type="button" class="quiet" onClick={() => done()}>
          {text.close}
        </button>
      </header>
      <label>
        {words.name}
        <input type="text" value={title} onInput={event => setTitle(event.currentTarget.value)} />
      </label>
      <WorkspaceChoice value={workspace} set={setWorkspace} />
      <label class="check">
        <input type="checkbox" checked={isDraft} onChange={event => setDraft(event.currentTarget.checked)} />
        {words.draft}
      </label>
      <div class="actions">
        <Action label={words.add} tone="primary" run={create} />
      </div>
    </form>
  )
}
