import { useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { clock } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { text } from '../../text.js'
import { Form, type Values } from '../../ui/form.js'
import { List, type ListView } from '../../ui/list.js'
import { Action, Badge, Code, Fields, Problem } from '../../ui/parts.js'
import { filled } from './json.js'

type Entry = ReplyOf<'GET /api/audit'>['entries'][number]
type Verdict = ReplyOf<'GET /api/audit/verify'>

const words = text.audit
const { fields } = text.manage
const PAGE = 50

/** One page of the matching entries; the first page without a cursor. */
const view = (
  filter: Values,
  cursor: string | undefined,
  found: (next: string | undefined) => void,
): ListView<Entry> => ({
  name: `audit ${JSON.stringify(filter)} ${cursor ?? ''}`,
  title: words.title,
  command: ['svc audit list', ...Object.entries(filter).map(([name, value]) => `--${name} ${value}`)].join(' '),
  load: async signal => {
    const query = { ...filter, limit: PAGE, ...(cursor !== undefined && { cursor }) }
    const { entries, page } = await api('GET /api/audit', { query }, signal)
    found(page.next_cursor)
    return entries
  },
  id: ({ seq }) => String(seq),
  columns: [
    { header: words.action, cell: ({ action }) => <code>{action}</code> },
    { header: words.subject, cell: ({ subject }) => subject, wide: true },
    { header: words.actor, cell: ({ actor }) => `${actor.kind} ${actor.id}` },
    { header: fields.time, cell: ({ at }) => clock(at) },
  ],
  empty: words.none,
  detail: {
    title: ({ action }) => action,
    command: ({ request, subject }) => `svc why ${request ?? subject}`,
    show: entry => (
      <>
        <Fields
          of={[
            [words.number, String(entry.seq)],
            [fields.time, clock(entry.at)],
            [words.subject, entry.subject],
            [words.actor, `${entry.actor.kind} ${entry.actor.id}`],
            [words.origin, entry.origin],
            [words.behalf, entry.on_behalf_of],
            [words.request, entry.request],
          ]}
        />
        <Why key={entry.seq} id={entry.request ?? entry.event ?? entry.subject} />
        {entry.before !== undefined && (
          <>
            <h3>{words.before}</h3>
            <Code label={words.before}>{entry.before}</Code>
          </>
        )}
        {entry.after !== undefined && (
          <>
            <h3>{words.after}</h3>
            <Code label={words.after}>{entry.after}</Code>
          </>
        )}
      </>
    ),
  },
})

/** The chain of causes of a change, back to the request. */
function Why({ id }: { readonly id: string }) {
  const { data } = useResource(signal => api('GET /api/audit/why', { query: { id } }, signal), [id])
  // Some entries have no recorded cause.
  if (!data || data.chain.length === 0) return null
  return (
    <>
      <h3>{words.why}</h3>
      <ol class="layers">
        {data.chain.map(link => (
          <li key={link.id}>
            {link.what} <span class="muted">{link.actor}</span>
            <code>{link.subject ?? link.id}</code>
          </li>
        ))}
      </ol>
    </>
  )
}

export function Audit({ selected }: { readonly selected: string | undefined }) {
  const [filter, setFilter] = useState<Values>({})
  /** Cursors of the pages up to the current one. */
  const [cursors, setCursors] = useState<readonly string[]>([])
  const [next, setNext] = useState<string>()
  const shown = view(filter, cursors.at(-1), setNext)
  const pages = (
    <div class="actions">
      {cursors.length > 0 && (
        <button type="button" onClick={() => setCursors(cursors.slice(0, -1))}>
          {words.newer}
        </button>
      )}
      {next !== undefined && (
        <button type="button" onClick={() => setCursors([...cursors, next])}>
          {words.older}
        </button>
      )}
    </div>
  )
  return (
    <List view={shown} path={['manage', 'audit']} selected={selected} foot={pages}>
      <div class="inline-form">
        <Form
          filters
          label={words.filter}
          fields={[
            { name: 'actor', label: words.actor, optional: true, value: filter.actor ?? '' },
            { name: 'action', label: words.action, optional: true, value: filter.action ?? '' },
            { name: 'subject', label: words.subject, optional: true, value: filter.subject ?? '' },
          ]}
          submit={async values => {
            setCursors([])
            setFilter(filled(values) as Values)
          }}
        />
      </div>
      <Verification />
    </List>
  )
}

/** Verifies the hash chain, and shows the first altered entry. */
function Verification() {
  const [verdict, setVerdict] = useState<Verdict>()
  return (
    <div class="actions">
      <Action
        label={words.verify}
        run={async () => {
          const reply = await api('GET /api/audit/verify')
          setVerdict(reply)
          announce(reply.status === 'ok' ? words.intact(reply.checked) : words.broken)
        }}
      />
      {verdict?.status === 'ok' && (
        <>
          <Badge of="ok" /> <span>{words.intact(verdict.checked)}</span>
        </>
      )}
      {verdict?.status === 'broken' && (
        <Problem error={`${words.broken} ${verdict.broken?.seq ?? ''}: ${verdict.broken?.problem ?? ''}`} />
      )}
    </div>
  )
}
