import { api, type ReplyOf } from '../../core/api.js'
import { linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import type { ListView } from '../../ui/list.js'
import { Code, Fields, Problem } from '../../ui/parts.js'

export type Agent = ReplyOf<'GET /api/agents'>['agents'][number]

const { fields } = text.manage
const words = text.sidecars

/** Agents of two workspaces may have the same name. */
export function agentId({ name, workspace_id: workspace }: Agent): string {
  return workspace ? `${name}@${workspace}` : name
}

export const agents: ListView<Agent> = {
  name: 'agents',
  title: text.manage.agents,
  command: 'svc agent list',
  load: async signal => (await api('GET /api/agents', {}, signal)).agents,
  changes: /^agent\./,
  id: agentId,
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
        <div class="actions">
          <a class="button" href={linkTo('manage', 'agents', agentId(agent), 'soul')}>
            {words.soul}
          </a>
          <a class="button" href={linkTo('manage', 'agents', agentId(agent), 'heartbeat')}>
            {words.heartbeat}
          </a>
        </div>
        {agent.diagnostics?.map(({ message, path }) => (
          <Problem key={`${path} ${message}`} error={`${path}: ${message}`} />
        ))}
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
