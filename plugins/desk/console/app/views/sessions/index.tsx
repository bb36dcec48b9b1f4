import { useState } from 'preact/hooks'
import { api, type ReplyOf } from '../../core/api.js'
import { ago } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { go, linkTo, place } from '../../core/router.js'
import { text } from '../../text.js'
import { Columns } from '../../ui/columns.js'
import { Action, Badge, Empty, Loading, Page, Problem } from '../../ui/parts.js'
import { WorkspaceChoice } from '../../ui/workspace-choice.js'
import { OneSession } from './session.js'

export type Session = ReplyOf<'GET /api/sessions'>['sessions'][number]

const words = text.sessions

/** The list of sessions, or a single session. */
export function Sessions() {
  const [, id] = place.value
  // No session has this id.
  const isArchive = id === 'archived'
  return id === undefined || isArchive ? <SessionList isArchive={isArchive} /> : <OneSession key={id} id={id} />
}

function SessionList({ isArchive }: { readonly isArchive: boolean }) {
  const { data, error, reload } = useResource(
    signal => api('GET /api/sessions', { query: { sort: 'last_activity', limit: 100, archived: isArchive } }, signal),
    [isArchive],
    /^session\./,
  )
  const [isOpen, setOpen] = useState(false)
  const create = (
    <button type="button" class="primary" onClick={() => setOpen(true)}>
      {words.create}
    </button>
  )
  return (
    <Columns aside={isOpen ? <NewSession close={() => setOpen(false)} /> : undefined}>
      <Page
        title={words.title}
        command={isArchive ? 'svc session list --archived' : 'svc session list'}
        actions={create}
      >
        <nav class="tabs" aria-label={words.title}>
          <a href={linkTo('sessions')} aria-current={isArchive ? undefined : 'page'}>
            {text.archive.current}
          </a>
          <a href={linkTo('sessions', 'archived')} aria-current={isArchive ? 'page' : undefined}>
            {text.archive.archived}
          </a>
        </nav>
        <Problem error={error} retry={reload} />
        {!data && error === undefined && <Loading />}
        {data &&
          data.sessions.length === 0 &&
          (isArchive ? <Empty>{text.archive.none}</Empty> : <Empty command="svc run">{words.none}</Empty>)}
        {data && data.sessions.length > 0 && <Table sessions={data.sessions} />}
      </Page>
    </Columns>
  )
}

function Table({ sessions }: { readonly sessions: readonly Session[] }) {
  return (
    <div class="table" tabIndex={0} role="region" aria-label={words.title}>
      <table>
        <thead>
          <tr>
            <th scope="col" class="wide">
              {words.name}
            </th>
            <th scope="col">{words.agent}</th>
            <th scope="col">{words.state}</th>
            <th scope="col">{words.changed}</th>
          </tr>
        </thead>
        <tbody>
          {sessions.map(session => (
            <tr key={session.id}>
              <td class="wide">
                <a href={linkTo('sessions', session.id)}>{session.name || session.id}</a>
              </td>
              <td>{session.agent_name}</td>
              <td>
                <Badge of={session.badge || session.state} />
              </td>
              <td>{ago(session.updated_at)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function NewSession({ close }: { readonly close: () => void }) {
  const [workspace, setWorkspace] = useState('')
  const [agent, setAgent] = useState('')
  const [prompt, setPrompt] = useState('')
  const { data } = useResource(
    signal => api('GET /api/agents', { query: workspace === '' ? {} : { workspace } }, signal),
    [workspace],
  )
  const first = agent || data?.agents[0]?.name || ''
  const start = async () => {
    const body = {
      ...(workspace !== '' && { workspace }),
      ...(first !== '' && { agent_name: first }),
      ...(prompt.trim() !== '' && { prompt }),
    }
    const { session } = await api('POST /api/sessions', { body })
    go('sessions', session.id)
  }
  return (
    <form class="detail" onSubmit={event => event.preventDefault()}>
      <header>
        <h2>{words.create}</h2>
        <button type="button" class="quiet" onClick={close}>
          {text.close}
        </button>
      </header>
      <WorkspaceChoice value={workspace} set={setWorkspace} />
      <label>
        {words.agent}
        <select value={first} onChange={event => setAgent(event.currentTarget.value)}>
          {data?.agents.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        {words.prompt}
        <textarea rows={4} value={prompt} onInput={event => setPrompt(event.currentTarget.value)} />
      </label>
      <div class="actions">
        <Action label={words.start} tone="primary" run={start} />
      </div>
    </form>
  )
}
