import { useEffect, useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { ApiFault, api, type ReplyOf } from '../../core/api.js'
import { clock } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Columns } from '../../ui/columns.js'
import { Confirmed } from '../../ui/form.js'
import { Action, Badge, Empty, Fields, Loading, Page, Problem } from '../../ui/parts.js'

export type Which = 'soul' | 'heartbeat'
type Stored = ReplyOf<'GET /api/agents/{name}/soul/text'>
type Diagnostic = NonNullable<Stored['diagnostics']>[number]

const words = text.sidecars
const { fields } = text.manage
const FILES = { soul: 'SOUL.md', heartbeat: 'HEARTBEAT.md' } as const
/** The pause after the last key press before the text is checked. */
const CHECK_MS = 400

const at = (name: string, workspace: string | undefined) => ({
  path: { name },
  ...(workspace && { query: { workspace_id: workspace } }),
})

const routes = {
  soul: {
    text: 'GET /api/agents/{name}/soul/text',
    write: 'PUT /api/agents/{name}/soul',
    remove: 'DELETE /api/agents/{name}/soul',
    validate: 'POST /api/agents/{name}/soul/validate',
    history: 'GET /api/agents/{name}/soul/history',
    rollback: 'POST /api/agents/{name}/soul/rollback',
  },
  heartbeat: {
    text: 'GET /api/agents/{name}/heartbeat/text',
    write: 'PUT /api/agents/{name}/heartbeat',
    remove: 'DELETE /api/agents/{name}/heartbeat',
    validate: 'POST /api/agents/{name}/heartbeat/validate',
    history: 'GET /api/agents/{name}/heartbeat/history',
    rollback: 'POST /api/agents/{name}/heartbeat/rollback',
  },
} as const

/** An agent, with the editor of its persona or its heartbeat policy. */
export function SidecarPage({ id, which }: { readonly id: string; readonly which: Which }) {
  const [name = '', workspace] = id.split('@')
  const { data, error, reload } = useResource(
    signal => api(routes[which].text, at(name, workspace), signal) as Promise<Stored>,
    [id, which],
    /^(?:agent|sidecar|soul|heartbeat)/,
  )
  return (
    <Columns>
      <Page title={`${name}: ${FILES[which]}`} command={`svc agent ${which} inspect ${name}`}>
        <nav class="tabs" aria-label={name}>
          <a href={linkTo('manage', 'agents', id)}>{words.agent}</a>
          {(['soul', 'heartbeat'] as const).map(one => (
            <a key={one} href={linkTo('manage', 'agents', id, one)} aria-current={one === which ? 'page' : undefined}>
              {FILES[one]}
            </a>
          ))}
        </nav>
        <Problem error={error} retry={reload} />
        {!data && error === undefined && <Loading />}
        {data && <Editor key={`${id} ${which}`} of={{ name, workspace, which }} stored={data} reload={reload} />}
        {which === 'heartbeat' && <HeartbeatStatus name={name} workspace={workspace} />}
        <History of={{ name, workspace, which }} digest={data?.digest} reload={reload} />
      </Page>
    </Columns>
  )
}

interface Subject {
  readonly name: string
  readonly workspace: string | undefined
  readonly which: Which
}

const bodyOf = ({ workspace }: Subject) => (workspace ? { workspace_id: workspace } : {})

/**
 * The text, with the digest of the file that it came from. If the file changes meanwhile, the edit stays, and overwrites that
 * change only after a confirmation.
 */
function Editor({
  of,
  stored,
  reload,
}: {
  readonly of: Subject
  readonly stored: Stored
  readonly reload: () => void
}) {
  const { name, which } = of
  const [base, setBase] = useState({ text: stored.text ?? '', digest: stored.digest ?? '' })
  const [draft, setDraft] = useState(base.text)
  const [found, setFound] = useState<readonly Diagnostic[]>(stored.diagnostics ?? [])
  const isEdited = draft !== base.text
  const isElsewhere = (stored.digest ?? '') !== base.digest
  useEffect(() => {
    // Without an edit, the changed file replaces the text.
    if (isElsewhere && !isEdited) take()
  }, [stored.digest])
  useEffect(() => {
    if (!isEdited) {
      setFound(stored.diagnostics ?? [])
      return
    }
    const over = new AbortController()
    const timer = setTimeout(() => {
      const input = { path: { name }, body: { body: draft, ...bodyOf(of) } }
      api(routes[which].validate, input, over.signal).then(
        reply => setFound(reply.diagnostics ?? []),
        error => over.signal.aborted || setFound(diagnosticsOf(error)),
      )
    }, CHECK_MS)
    return () => {
      clearTimeout(timer)
      over.abort()
    }
  }, [draft, stored])
  function take() {
    const taken = { text: stored.text ?? '', digest: stored.digest ?? '' }
    setBase(taken)
    setDraft(taken.text)
  }
  const write = async (expected_digest: string) => {
    try {
      const input = { path: { name }, body: { body: draft, expected_digest, ...bodyOf(of) } }
      const reply = await api(routes[which].write, input)
      const now = 'soul' in reply ? reply.soul : 'heartbeat' in reply ? reply.heartbeat : undefined
      setBase({ text: draft, digest: now?.digest ?? '' })
      announce(text.manage.saved)
    } catch (error) {
      if (error instanceof ApiFault && error.status === 422) {
        setFound(diagnosticsOf(error))
        throw new Error(words.invalid)
      }
      throw error
    } finally {
      reload()
    }
  }
  if (stored.present && stored.text === undefined) return <Diagnostics of={stored.diagnostics ?? []} />
  return (
    <section>
      <p class="muted">{which === 'soul' ? words.aboutSoul : words.aboutHeartbeat}</p>
      <label>
        {FILES[which]}
        <textarea
          class="editor"
          rows={16}
          spellcheck={false}
          value={draft}
          onInput={event => setDraft(event.currentTarget.value)}
        />
      </label>
      <Diagnostics of={found} />
      {isElsewhere && isEdited && (
        <div class="problem" role="alert">
          <p>{words.conflict}</p>
          <div class="actions">
            <button type="button" onClick={take}>
              {words.discard}
            </button>
            <Confirmed
              label={words.overwrite}
              question={words.overwriteQuestion}
              run={() => write(stored.digest ?? '')}
            />
          </div>
          <details>
            <summary>{words.theirs}</summary>
            <pre class="code" tabIndex={0}>
              {stored.text ?? words.noFile}
            </pre>
          </details>
        </div>
      )}
      <div class="actions">
        <Action label={text.manage.save} tone="primary" run={() => write(base.digest)} />
        <Badge of={isEdited ? words.edited : stored.validation_status} />
        {stored.present && (
          <Confirmed
            label={words.remove}
            question={words.removeQuestion(FILES[which])}
            run={async () => {
              const body = { expected_digest: stored.digest ?? '', ...bodyOf(of) }
              await api(routes[which].remove, { path: { name }, body })
              setBase({ text: '', digest: '' })
              setDraft('')
              reload()
            }}
          />
        )}
      </div>
    </section>
  )
}

/** A 422 reply to an invalid text contains the diagnostics. */
const diagnosticsOf = (error: unknown): readonly Diagnostic[] =>
  error instanceof ApiFault ? ((error.body as Partial<Stored> | undefined)?.diagnostics ?? []) : []

function Diagnostics({ of: found }: { readonly of: readonly Diagnostic[] }) {
  if (found.length === 0) return null
  return (
    <ul class="rows" aria-label={words.diagnostics}>
      {found.map(({ code, severity, message, line, column }) => (
        <li key={`${code} ${line} ${column} ${message}`}>
          <Badge of={severity} />
          {line !== undefined && <span class="muted">{words.place(line, column)}</span>}
          <span class="grow">{message}</span>
        </li>
      ))}
    </ul>
  )
}

/** Whether the policy applies, and its latest decisions. */
function HeartbeatStatus({ name, workspace }: { readonly name: string; readonly workspace: string | undefined }) {
  const { data } = useResource(
    signal =>
      api(
        'GET /api/agents/{name}/heartbeat/status',
        {
          path: { name },
          query: { ...(workspace && { workspace_id: workspace }), include_recent_wake_events: true },
        },
        signal,
      ),
    [name, workspace],
    /^(?:agent|heartbeat|session)/,
  )
  if (!data) return null
  return (
    <section>
      <h2>{words.wakes}</h2>
      <Fields
        of={[
          [fields.active, data.active ? text.automation.yes : text.automation.no],
          [words.interval, data.preferences.min_interval],
          [words.session, data.session_health?.session_id],
          [words.next, data.wake_state?.next_allowed_at && clock(data.wake_state.next_allowed_at)],
        ]}
      />
      {(data.wake_events ?? []).length === 0 ? (
        <Empty>{words.noWakes}</Empty>
      ) : (
        <ul class="rows">
          {data.wake_events?.map(one => (
            <li key={one.id}>
              <Badge of={one.result} />
              <span class="grow">{one.reason.replaceAll('_', ' ')}</span>
              <span class="muted">{clock(one.created_at)}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function History({
  of,
  digest,
  reload,
}: {
  readonly of: Subject
  readonly digest: string | undefined
  readonly reload: () => void
}) {
  const { name, workspace, which } = of
  const { data } = useResource(
    async signal => (await api(routes[which].history, at(name, workspace), signal)).revisions,
    [name, workspace, which, digest],
  )
  if (!data || data.length === 0) return null
  return (
    <section>
      <h2>{words.history}</h2>
      <ul class="rows">
        {data.map(one => (
          <li key={one.id}>
            <Badge of={'action' in one ? one.action : one.operation} />
            <span class="grow">
              {clock(one.created_at)} <span class="muted">{one.actor.ref ?? one.actor.kind}</span>
            </span>
            {one.new_digest && one.new_digest !== digest && (
              <Action
                label={words.restore}
                run={async () => {
                  const body = { revision_id: one.id, expected_digest: digest ?? '', ...bodyOf(of) }
                  await api(routes[which].rollback, { path: { name }, body })
                  reload()
                }}
              />
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}
