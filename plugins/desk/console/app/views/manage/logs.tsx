import { api, type ReplyOf } from '../../core/api.js'
import { clock, valueText } from '../../core/format.js'
import { text } from '../../text.js'
import type { ListView } from '../../ui/list.js'
import { Code, Fields } from '../../ui/parts.js'

type Event = ReplyOf<'GET /api/logs'>['events'][number]

const { fields } = text.manage

export const logs: ListView<Event> = {
  name: 'logs',
  title: text.manage.logs,
  command: 'svc logs events',
  load: async signal => [...(await api('GET /api/logs', { query: { limit: 200 } }, signal)).events].reverse(),
  changes: /./,
  id: ({ id }) => id,
  columns: [
    { header: fields.type, cell: ({ type }) => <code>{type}</code> },
    { header: fields.summary, cell: ({ summary }) => summary ?? '', wide: true },
    { header: fields.agent, cell: ({ agent_name: agent }) => agent },
    { header: fields.time, cell: ({ timestamp }) => clock(timestamp) },
  ],
  empty: text.manage.none.logs,
  detail: {
    title: ({ type }) => type,
    command: ({ seq }) => `svc logs events --after-seq ${seq - 1} --limit 1`,
    show: event => (
      <>
        <Fields
          of={[
            [fields.time, clock(event.timestamp)],
            [fields.summary, event.summary],
            [fields.agent, event.agent_name],
          ]}
        />
        {event.content !== undefined && (
          <>
            <h3>{fields.content}</h3>
            <Code label={fields.content}>{valueText(event.content)}</Code>
          </>
        )}
      </>
    ),
  },
}
