import { useState } from 'preact/hooks'
import { api, type ReplyOf } from '../../core/api.js'
import { useResource } from '../../core/resource.js'
import { go, linkTo, place } from '../../core/router.js'
import { text } from '../../text.js'
import { Columns } from '../../ui/columns.js'
import { Loading, Page, Problem } from '../../ui/parts.js'
import { Board } from './board.js'
import { Detail } from './detail.js'
import { Graph } from './graph.js'
import { Inbox } from './inbox.js'
import { NewTask } from './new-task.js'
import { OneRun, Runs } from './runs.js'
import { OneWorktree, Worktrees } from './worktrees.js'

export type Task = ReplyOf<'GET /api/tasks'>['tasks'][number]

const words = text.work

/** The parts of this view, with the command for each. No task has such an id. */
const parts = {
  board: 'svc task board',
  graph: 'svc task list',
  runs: 'svc task run all',
  worktrees: 'svc worktree list',
  inbox: 'svc inbox',
} as const
type Part = keyof typeof parts

const isPart = (name: string | undefined): name is Part => name !== undefined && Object.hasOwn(parts, name)

/** Tasks as a board and as a graph, their runs, worktrees, and the inbox. */
export function Work() {
  const [, first, second, third] = place.value
  const part = isPart(first) ? first : 'board'
  const selected = isPart(first) ? second : first
  const { data, error, reload } = useResource(
    signal => api('GET /api/tasks', { query: { scope: 'all', include_drafts: true, limit: 200 } }, signal),
    [],
    /^task\./,
  )
  const [isOpen, setOpen] = useState(false)
  const tasks = data?.tasks ?? []
  const back = part === 'board' ? ['work'] : ['work', part]
  const detail =
    selected === undefined ? undefined : part === 'worktrees' ? (
      third && <OneWorktree key={`${selected}/${third}`} workspace={selected} name={third} />
    ) : part === 'runs' ? (
      <OneRun key={selected} id={selected} />
    ) : (
      <Detail key={selected} id={selected} tasks={tasks} back={back} changed={reload} />
    )
  const aside = isOpen ? (
    <NewTask
      done={id => {
        setOpen(false)
        reload()
        if (id) go('work', id)
      }}
    />
  ) : (
    detail
  )
  return (
    <Columns aside={aside}>
      <Page
        title={words.title}
        command={parts[part]}
        actions={
          <button type="button" class="primary" onClick={() => setOpen(true)}>
            {words.create}
          </button>
        }
      >
        <nav class="tabs" aria-label={words.title}>
          {(Object.keys(parts) as Part[]).map(name => (
            <a
              key={name}
              href={name === 'board' ? linkTo('work') : linkTo('work', name)}
              aria-current={name === part ? 'page' : undefined}
            >
              {text.graph.parts[name]}
            </a>
          ))}
        </nav>
        <Problem error={error} retry={reload} />
        {!data && error === undefined && <Loading />}
        {data && part === 'board' && <Board tasks={tasks} selected={selected} />}
        {data && part === 'graph' && <Graph tasks={tasks} selected={selected} />}
        {data && part === 'runs' && <Runs tasks={tasks} selected={selected} />}
        {part === 'worktrees' && <Worktrees selected={third && `${selected}/${third}`} />}
        {part === 'inbox' && <Inbox />}
      </Page>
    </Columns>
  )
}
