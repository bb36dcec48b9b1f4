import { api, type ReplyOf } from '../../core/api.js'
import { useResource } from '../../core/resource.js'
import { text } from '../../text.js'
import { Confirmed } from '../../ui/form.js'
import type { ListView } from '../../ui/list.js'
import { Action, Badge, Code, Fields, Problem } from '../../ui/parts.js'
import { Install } from './install.js'

type Extension = ReplyOf<'GET /api/extensions'>['extensions'][number]

const { fields } = text.manage
const { enable, disable } = text.automation
const words = text.extensions

export const extensions: ListView<Extension> = {
  name: 'extensions',
  title: text.manage.extensions,
  command: 'svc extension list',
  load: async signal => (await api('GET /api/extensions', {}, signal)).extensions,
  changes: /^(?:extension|plugin)\./,
  id: ({ name }) => name,
  columns: [
    { header: fields.name, cell: ({ name }) => name, wide: true },
    { header: fields.version, cell: ({ version }) => version },
    { header: fields.state, cell: ({ state }) => <Badge of={state} /> },
    { header: fields.source, cell: ({ source }) => source },
  ],
  empty: text.manage.none.extensions,
  create: {
    label: words.install,
    command: 'svc extension install <folder>',
    show: done => <Install done={done} />,
  },
  detail: {
    title: ({ name }) => name,
    command: ({ name }) => `svc extension show ${name}`,
    show: (extension, reload) => (
      <>
        <div class="actions">
          <Action
            label={extension.enabled ? disable : enable}
            run={async () => {
              const at = { path: { name: extension.name } }
              await (extension.enabled
                ? api('POST /api/extensions/{name}/disable', at)
                : api('POST /api/extensions/{name}/enable', at))
              reload()
            }}
          />
          {extension.enabled && (
            <Action
              label={words.reload}
              run={async () => {
                await api('POST /api/extensions/{name}/reload', { path: { name: extension.name }, body: {} })
                reload()
              }}
            />
          )}
          <Confirmed
            label={words.remove}
            question={words.removeQuestion(extension.name)}
            run={async () => {
              await api('DELETE /api/extensions/{name}', { path: { name: extension.name } })
              reload()
            }}
          />
        </div>
        {extension.last_error && <Problem error={extension.last_error} />}
        <Fields
          of={[
            [fields.version, extension.version],
            [fields.state, extension.state],
            [fields.health, extension.health_message ?? extension.health],
            [words.missing, extension.missing_env?.join(', ')],
            [fields.source, extension.source],
            [fields.folder, extension.origin_path],
          ]}
        />
        {extension.items && extension.items.length > 0 && (
          <>
            <h3>{words.brings}</h3>
            <ul class="rows">
              {extension.items.map(({ id, kind, name, live }) => (
                <li key={`${kind} ${id}`}>
                  <span class="muted">{kind}</span>
                  <code class="grow wrap">{name}</code>
                  <Badge of={live ? 'active' : 'inactive'} />
                </li>
              ))}
            </ul>
          </>
        )}
        <Log key={extension.name} name={extension.name} />
      </>
    ),
  },
}

function Log({ name }: { readonly name: string }) {
  const { data } = useResource(
    async signal => (await api('GET /api/extensions/{name}/logs', { path: { name } }, signal)).logs,
    [name],
    /^extension/,
  )
  if (!data || data.length === 0) return null
  return (
    <>
      <h3>{text.manage.logs}</h3>
      <Code label={text.manage.logs}>{data.map(({ message }) => message).join('\n')}</Code>
    </>
  )
}
