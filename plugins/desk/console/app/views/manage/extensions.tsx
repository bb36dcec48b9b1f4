import { api, type ReplyOf } from '../../core/api.js'
import { text } from '../../text.js'
import type { ListView } from '../../ui/list.js'
import { Action, Badge, Fields } from '../../ui/parts.js'

type Extension = ReplyOf<'GET /api/extensions'>['extensions'][number]

const { fields } = text.manage
const { enable, disable } = text.automation

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
        </div>
        <Fields
          of={[
            [fields.version, extension.version],
            [fields.state, extension.state],
            [fields.health, extension.health_message ?? extension.health],
            [fields.error, extension.last_error],
            [fields.source, extension.source],
            [fields.folder, extension.origin_path],
          ]}
        />
      </>
    ),
  },
}
