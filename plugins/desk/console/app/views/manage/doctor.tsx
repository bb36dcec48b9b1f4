import { api, type ReplyOf } from '../../core/api.js'
import { valueText } from '../../core/format.js'
import { text } from '../../text.js'
import type { ListView } from '../../ui/list.js'
import { Badge, Code, Command, Fields } from '../../ui/parts.js'

type Finding = ReplyOf<'GET /api/doctor'>['items'][number]

const { fields } = text.manage

export const doctor: ListView<Finding> = {
  name: 'doctor',
  title: text.manage.doctor,
  command: 'svc doctor',
  load: async signal => (await api('GET /api/doctor', { query: { quiet: true } }, signal)).items,
  id: ({ id }) => id,
  columns: [
    { header: fields.title, cell: ({ title }) => title, wide: true },
    { header: fields.severity, cell: ({ severity }) => <Badge of={severity} /> },
    { header: fields.category, cell: ({ category }) => category },
  ],
  empty: text.manage.none.doctor,
  detail: {
    title: ({ title }) => title,
    command: ({ category }) => `svc doctor --only ${category}`,
    show: finding => (
      <>
        <p>{finding.message}</p>
        {finding.suggested_command && <Command line={finding.suggested_command} />}
        <Fields
          of={[
            [fields.severity, finding.severity],
            [fields.category, finding.category],
          ]}
        />
        {finding.evidence && (
          <>
            <h3>{fields.evidence}</h3>
            <Code label={fields.evidence}>{valueText(finding.evidence)}</Code>
          </>
        )}
      </>
    ),
  },
}
