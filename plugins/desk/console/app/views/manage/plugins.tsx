import { api, type ReplyOf } from '../../core/api.js'
import { text } from '../../text.js'
import type { ListView } from '../../ui/list.js'
import { Badge, Fields } from '../../ui/parts.js'

type Plugin = ReplyOf<'GET /api/plugins'>['plugins'][number]

const { fields } = text.manage

export const plugins: ListView<Plugin> = {
  name: 'plugins',
  title: text.manage.plugins,
  command: 'svc plugin list',
  load: async signal => (await api('GET /api/plugins', {}, signal)).plugins,
  changes: /^(?:extension|plugin)\./,
  id: ({ name }) => name,
  columns: [
    { header: fields.name, cell: ({ name }) => name, wide: true },
    { header: fields.version, cell: ({ version }) => version },
    { header: fields.state, cell: ({ state }) => <Badge of={state} /> },
  ],
  empty: text.manage.none.plugins,
  filter: true,
  detail: {
    title: ({ name }) => name,
    command: ({ name }) => `svc plugin show ${name}`,
    show: plugin => (
      <Fields
        of={[
          [fields.version, plugin.version],
          [fields.state, plugin.state],
          [fields.reason, plugin.reason],
        ]}
      />
    ),
  },
}
