import { api, type ReplyOf } from '../../core/api.js'
import { text } from '../../text.js'
import type { ListView } from '../../ui/list.js'
import { Code, Fields } from '../../ui/parts.js'

type Agent = ReplyOf<'GET /api/agents'>['agents'][number]

const { fields } = text.manage

export const agents: ListView<Agent> = {
  name: 'agents',
  title: text.manage.agents,
  command: 'svc agent list',
  load: async signal => (await api('GET /api/agents', {}, signal)).agents,
  changes: /^agent\./,
  id: ({ name, workspace_id: workspace }) => (workspace ? `${name}@${workspace}` : name),
  columns: [
    { header: fields.name, cell: ({ name }) => name, wide: true },
    { header: fields.provider, cell: ({ provider }) => provider || '–' },
    { header: fields.permissions, cell: agent => agent.effective_permissions ?? agent.permissions ?? '–' },
    { header: fields.origin, cell: ({ origin }) => origin },
  ],
  empty: text.manage.none.agents,
  detail: {
    title: ({ name }) => name,
    command: ({ name }) => `svc agent info ${name}`,
    show: agent => (
      <>
        <Fields
          of={[
            [fields.provider, agent.effective_runtime?.provider ?? agent.provider],
            [fields.model, agent.effective_runtime?.model ?? agent.model],
            [fields.permissions, agent.effective_permissions ?? agent.permissions],
            [fields.origin, agent.origin],
            [fields.command, agent.command],
            [fields.tools, agent.tools?.join(', ')],
          ]}
        />
        <h3>{fields.instructions}</h3>
        <Code label={fields.instructions}>{agent.prompt}</Code>
      </>
    ),
  },
}
