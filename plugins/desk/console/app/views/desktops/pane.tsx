import { useEffect, useState } from 'preact/hooks'
import { api } from '../../core/api.js'
import { useResource } from '../../core/resource.js'
import { linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Badge, Empty, Loading, Problem } from '../../ui/parts.js'

const words = text.desktops

interface PaneProps {
  readonly workspace: string
  readonly app: string
  readonly pathname: string
  /** Sets the window's title from its content. */
  readonly setTitle: (title: string | undefined) => void
}

/** The content of a window. Extensions may open windows for apps that the console does not know. */
export function Pane({ workspace, app, pathname, setTitle }: PaneProps) {
  const id = pathname.replace(/^\//, '')
  if (app === 'sessions' && id !== '') return <SessionPane key={id} id={id} setTitle={setTitle} />
  if (app === 'sessions') return <SessionsPane workspace={workspace} />
  if (app === 'work') return <WorkPane workspace={workspace} />
  if (app === 'attention') return <AttentionPane />
  return <Empty>{words.unknown(app)}</Empty>
}

const loadSession = () => import('../sessions/session.js')

function SessionPane({ id, setTitle }: { readonly id: string; readonly setTitle: (title: string) => void }) {
  const [loaded, set] = useState<Awaited<ReturnType<typeof loadSession>>>()
  useEffect(() => void loadSession().then(set, () => {}), [])
  return loaded ? <loaded.Conversation id={id} setTitle={setTitle} /> : <Loading />
}

function SessionsPane({ workspace }: { readonly workspace: string }) {
  const { data, error, reload } = useResource(
    signal => api('GET /api/sessions', { query: { workspace, sort: 'last_activity', limit: 50 } }, signal),
    [workspace],
    /^session\./,
  )
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  if (data.sessions.length === 0) return <Empty>{text.sessions.none}</Empty>
  return (
    <ul class="rows">
      {data.sessions.map(session => (
        <li key={session.id}>
          <a href={linkTo('sessions', session.id)}>{session.name || session.id}</a>
          <Badge of={session.badge || session.state} />
        </li>
      ))}
    </ul>
  )
}

function WorkPane({ workspace }: { readonly workspace: string }) {
  const { data, error, reload } = useResource(
    signal => api('GET /api/tasks', { query: { scope: 'all', workspace, include_drafts: true, limit: 100 } }, signal),
    [workspace],
    /^task\./,
  )
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  if (data.tasks.length === 0) return <Empty>{text.work.none}</Empty>
  return (
    <ul class="rows">
      {data.tasks.map(task => (
        <li key={task.id}>
          <a href={linkTo('work', task.id)}>{task.title}</a>
          <Badge of={task.status} />
        </li>
      ))}
    </ul>
  )
}

function AttentionPane() {
  const { data, error, reload } = useResource(signal => api('GET /api/inbox', {}, signal), [], /./)
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  if (data.items.length === 0) return <Empty>{text.home.nothing}</Empty>
  return (
    <ul class="rows">
      {data.items.map((item, n) => {
        const to =
          'session_id' in item && item.session_id
            ? linkTo('sessions', item.session_id)
            : 'task_id' in item
              ? linkTo('work', item.task_id)
              : undefined
        return (
          <li key={n}>
            <Badge of={item.kind} />
            {to ? <a href={to}>{item.title}</a> : <span>{item.title}</span>}
          </li>
        )
      })}
    </ul>
  )
}
