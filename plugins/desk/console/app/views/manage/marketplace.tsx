import { signal } from '@preact/signals'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { useResource } from '../../core/resource.js'
import { text } from '../../text.js'
import { Form, type FormField } from '../../ui/form.js'
import { List, type ListView } from '../../ui/list.js'
import { Action, Badge, Empty, Fields, Loading, Problem } from '../../ui/parts.js'
import { Install } from './install.js'

type Entry = ReplyOf<'GET /api/marketplace/search'>['kinds'][number]['items'][number]
type Info = ReplyOf<'GET /api/marketplace/{kind}/{entry_id}'>

const words = text.marketplace
const { fields } = text.manage

/** The search text; if empty, featured entries are shown. */
const query = signal('')
/** Kinds whose catalog could not be read, with the reason. */
const problems = signal<readonly string[]>([])

const view = (q: string): ListView<Entry> => ({
  name: `marketplace ${q}`,
  title: words.title,
  command: q === '' ? 'svc marketplace search' : `svc marketplace search ${q}`,
  load: async abort => {
    const { kinds } = await api('GET /api/marketplace/search', { query: { limit: 50, ...(q !== '' && { q }) } }, abort)
    problems.value = kinds.flatMap(({ kind, error }) => (error ? [`${kind}: ${error}`] : []))
    return kinds.flatMap(({ items }) => items)
  },
  changes: /^(?:extension|skill|mcp)\./,
  id: ({ kind, entry_id: id }) => `${kind}/${id}`,
  columns: [
    { header: fields.name, cell: ({ name }) => name },
    { header: words.kind, cell: ({ kind }) => kind },
    { header: fields.description, cell: ({ description }) => description, wide: true },
    {
      header: fields.state,
      cell: one =>
        one.installed ? <Badge of={one.update_available ? words.updatable : words.installed} /> : (one.version ?? '–'),
    },
  ],
  empty: words.none,
  detail: {
    title: ({ name }) => name,
    command: ({ kind, entry_id: id }) => `svc marketplace info ${kind} ${id}`,
    show: (entry, reload) => <Details key={`${entry.kind} ${entry.entry_id}`} entry={entry} reload={reload} />,
  },
})

export function Marketplace({ selected }: { readonly selected: string | undefined }) {
  return (
    <List view={view(query.value)} path={['manage', 'marketplace']} selected={selected}>
      <div class="inline-form">
        <Form
          filters
          label={text.search}
          fields={[{ name: 'q', label: words.words, optional: true, value: query.value }]}
          submit={async ({ q = '' }) => {
            query.value = q
          }}
        />
      </div>
      <div class="actions">
        <Action
          label={words.refresh}
          run={async () => {
            const { kinds } = await api('POST /api/marketplace/refresh')
            problems.value = kinds.flatMap(({ kind, error }) => (error ? [`${kind}: ${error}`] : []))
            announce(words.refreshed)
          }}
        />
      </div>
      {problems.value.map(problem => (
        <Problem key={problem} error={problem} />
      ))}
    </List>
  )
}

function Details({ entry, reload }: { readonly entry: Entry; readonly reload: () => void }) {
  const { kind, entry_id } = entry
  const { data, error } = useResource(
    signal => api('GET /api/marketplace/{kind}/{entry_id}', { path: { kind, entry_id } }, signal),
    [kind, entry_id],
  )
  return (
    <>
      <p>{entry.description}</p>
      <Fields
        of={[
          [words.kind, kind],
          [fields.version, entry.version],
          [words.installed, entry.installed && (entry.installed_version ?? entry.installed_name ?? words.yes)],
          [words.author, entry.author],
          [fields.source, entry.source],
          [fields.trust, entry.tier],
          [
            words.downloads,
            entry.downloads === null || entry.downloads === undefined ? undefined : `${entry.downloads}`,
          ],
        ]}
      />
      {entry.trust?.warnings?.map(warning => (
        <Problem key={warning.id} error={warning.message} />
      ))}
      <Problem error={error} />
      {!data && error === undefined && <Loading />}
      {data && !entry.installed && <Add info={data} reload={reload} />}
    </>
  )
}

/** Installs an entry; the form depends on its kind. */
function Add({ info, reload }: { readonly info: Info; readonly reload: () => void }) {
  const { kind, install_slug: slug = info.entry.entry_id, entry_id } = info.entry
  if (kind === 'extension') return <Install source={{ slug }} done={reload} />
  if (kind === 'bundle') return <Empty command={`svc bundle catalog`}>{words.bundleHint}</Empty>
  if (kind === 'skill')
    return (
      <Action
        label={words.install}
        tone="primary"
        run={async () => {
          await api('POST /api/skills/marketplace/install', { body: { slug } })
          announce(words.installed)
          reload()
        }}
      />
    )
  const variables = info.mcp?.env ?? []
  return (
    <Form
      label={words.install}
      fields={variables.map(
        ({ name, required, secret, prompt, default: value = '' }): FormField => ({
          ...{ name, label: name, value },
          ...(prompt && { hint: prompt }),
          ...(secret && { kind: 'password' }),
          ...(!required && { optional: true }),
        }),
      )}
      submit={async values => {
        const given = Object.entries(values).filter(([, value]) => value !== '')
        const env = Object.fromEntries(given.map(([name, value]) => [name, { value }]))
        await api('POST /api/settings/mcp-servers/install', {
          body: { entry_id, scope: 'global', values: { env } },
        })
        announce(words.installed)
        reload()
      }}
    />
  )
}
