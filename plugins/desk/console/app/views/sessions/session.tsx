import { useCallback, useEffect, useState } from 'preact/hooks'
import { api, type ReplyOf } from '../../core/api.js'
import { ago, clock } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { go, linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Columns } from '../../ui/columns.js'
import { ConfirmAction } from '../../ui/confirm.js'
import { Action, Badge, Command, Fields, Loading, Problem, useTitle } from '../../ui/parts.js'
import { type Offered, Prompt } from './prompt.js'
import { Questions } from './questions.js'
import { Rewind } from './rewind.js'
import { Transcript } from './transcript.js'
import { type Entry, useTranscript } from './use-transcript.js'

type Session = ReplyOf<'GET /api/sessions/{session_id}'>['session']

const words = text.sessions

/** A session: its transcript, the questions of its agent, and the prompt field. */
export function OneSession({ id }: { readonly id: string }) {
  const { data, error, reload } = useResource(
    signal => api('GET /api/sessions/{session_id}', { path: { session_id: id } }, signal),
    [id],
    /^session\./,
  )
  if (!data) return <Columns>{error === undefined ? <Loading /> : <Problem error={error} retry={reload} />}</Columns>
  return <Open session={data.session} reload={reload} />
}

function Open({ session, reload }: { readonly session: Session; readonly reload: () => void }) {
  const name = session.name || session.id
  const heading = useTitle(name)
  return (
    <Columns aside={<About session={session} reload={reload} />}>
      <div class="session">
        <header class="session-head">
          <a href={linkTo('sessions')} class="back">
            {words.title}
          </a>
          <h1 ref={heading} tabIndex={-1}>
            {name}
          </h1>
          <Badge of={session.badge || session.state} />
        </header>
        <Talk session={session} />
      </div>
    </Columns>
  )
}

/** A session without its details, for a window of a desktop. */
export function Conversation({ id, setTitle }: { readonly id: string; readonly setTitle: (title: string) => void }) {
  const { data, error, reload } = useResource(
    signal => api('GET /api/sessions/{session_id}', { path: { session_id: id } }, signal),
    [id],
    /^session\./,
  )
  const name = data && (data.session.name || id)
  useEffect(() => {
    if (name) setTitle(name)
  }, [name])
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  return (
    <div class="session">
      <Talk session={data.session} />
    </div>
  )
}

/** The transcript of a session, and its prompt field. */
function Talk({ session }: { readonly session: Session }) {
  const at = { workspace_id: session.workspace_id ?? '', session_id: session.id }
  const transcript = useTranscript(at)
  // The stream of a stopped session has ended; a resumed session opens it again.
  useEffect(() => transcript.wake(), [session.state])
  // Text arrives many times a second; only a new question in it reloads the open questions.
  const told = (transcript.entries.at(-1)?.message.parts ?? [])
    .flatMap(({ type, id, state }) =>
      /^data-(?:permission|clarification|question)/.test(type) ? [`${id} ${state}`] : [],
    )
    .join(' ')
  const [asked, ask] = useState<Entry>()
  const [offered, offer] = useState<Offered>()
  const rewind = useCallback((entry: Entry) => ask(entry), [])
  const isBusy = Boolean(session.activity?.turn_id) || transcript.isOpen
  return (
    <>
      <Problem error={transcript.error} />
      <Transcript transcript={transcript} agent={session.agent_name} isBusy={isBusy} rewind={rewind} />
      <Questions at={at} told={told} />
      <Prompt at={at} isBusy={isBusy} sent={transcript.wake} offered={offered} />
      {asked && <Rewind at={at} entry={asked} close={() => ask(undefined)} done={draft => offer({ text: draft })} />}
    </>
  )
}

function About({ session, reload }: { readonly session: Session; readonly reload: () => void }) {
  const at = { path: { workspace_id: session.workspace_id ?? '', session_id: session.id } }
  const then = (run: () => Promise<unknown>) => async () => {
    await run()
    reload()
  }
  return (
    <div class="detail">
      <header>
        <h2>{text.details}</h2>
      </header>
      <Command line={`svc session info ${session.id}`} />
      <Fields
        of={[
          [words.state, <Badge of={session.state} />],
          [words.agent, session.agent_name],
          [words.provider, session.provider],
          [words.model, session.model],
          [words.permissions, session.permissions],
          [words.folder, session.workspace_path],
          [words.created, clock(session.created_at)],
          [words.changed, ago(session.updated_at)],
          [text.manage.fields.reason, session.stop_detail ?? session.stop_reason],
        ]}
      />
      <div class="actions">
        {session.state !== 'stopped' && (
          <Action
            label={words.stop}
            run={then(() => api('POST /api/workspaces/{workspace_id}/sessions/{session_id}/stop', at))}
          />
        )}
        <Fork at={at} />
        {session.state === 'stopped' && <Archive session={session} reload={reload} />}
      </div>
    </div>
  )
}

/** Continues with a copy of the conversation in a separate worktree. */
function Fork({ at }: { readonly at: { readonly path: { workspace_id: string; session_id: string } } }) {
  const [name, setName] = useState('')
  const run = async () => {
    const body = { confirmed: true, new_worktree: name.trim() === '' ? {} : { name: name.trim() } }
    const { session } = await api('POST /api/workspaces/{workspace_id}/sessions/{session_id}/worktree-fork', {
      ...at,
      body,
    })
    go('sessions', session.id)
  }
  return (
    <ConfirmAction label={text.fork.label} title={text.fork.title} run={run}>
      <p class="muted">{text.fork.what}</p>
      <label>
        {text.fork.name}
        <input type="text" value={name} onInput={event => setName(event.currentTarget.value)} />
      </label>
    </ConfirmAction>
  )
}

/** A session does not contain whether it is archived; only the list of archived sessions does. */
function Archive({ session, reload }: { readonly session: Session; readonly reload: () => void }) {
  const at = { path: { workspace_id: session.workspace_id ?? '', session_id: session.id } }
  const archived = useResource(
    signal => api('GET /api/sessions', { query: { archived: true, q: session.id, limit: 1 } }, signal),
    [session.id, session.updated_at],
  )
  if (!archived.data) return null
  if (archived.data.sessions.some(({ id }) => id === session.id))
    return (
      <Action
        label={text.archive.undo}
        run={async () => {
          await api('POST /api/workspaces/{workspace_id}/sessions/{session_id}/unarchive', at)
          archived.reload()
          reload()
        }}
      />
    )
  return (
    <ConfirmAction
      label={words.archive}
      title={text.archive.title}
      run={async () => {
        await api('POST /api/workspaces/{workspace_id}/sessions/{session_id}/archive', at)
        go('sessions')
      }}
    >
      <p class="muted">{text.archive.what}</p>
    </ConfirmAction>
  )
}
