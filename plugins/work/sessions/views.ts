import type { CliColumn, CliView } from '../../../kernel/kit/annotations/index.js'

/** Why a session is not woken, in words. */
const ineligibility: Readonly<Record<string, string>> = {
  session_prompt_active: 'a prompt is running',
  session_not_attachable: 'it has ended',
  session_unhealthy: 'its agent is unhealthy',
  session_health_stale: 'its agent has not been heard of lately',
  session_health_hung: 'its agent does not respond',
  session_health_dead: 'its agent has ended',
  session_health_unknown: 'nothing is known of its agent',
}

/** What a session does now. */
export const statusFields: readonly CliColumn[] = [
  { header: 'ID', path: 'session_id' },
  { header: 'Agent', path: 'agent_name' },
  { header: 'State', path: 'state' },
  { header: 'Health', path: 'health' },
  { header: 'Prompt running', path: 'active_prompt' },
  { header: 'Can be woken', path: 'eligible_for_wake' },
  { header: 'Not woken because', path: 'ineligibility_reason', words: ineligibility },
  { header: 'Updated', path: 'updated_at', as: 'ago' },
]

/** Whether the agent of a session answers. */
export const healthFields: readonly CliColumn[] = [
  ...statusFields.slice(0, -1),
  { header: 'Can be attached', path: 'attachable' },
  { header: 'Last error', path: 'last_error' },
  { header: 'Last activity', path: 'last_activity_at', as: 'ago' },
  ...statusFields.slice(-1),
]

const within = (member: string) => (column: CliColumn) => ({ ...column, path: `${member}.${column.path}` })

/** Everything that helps to find a fault in a session. */
export const inspectView: CliView = {
  item: '',
  fields: [
    ...healthFields.map(within('health')),
    { header: 'Last woken', path: 'wake_state.last_wake_at', as: 'ago' },
    { header: 'Last wake-up', path: 'wake_state.last_result', words: { rate_limited: 'too many lately' } },
    { header: 'Woken again from', path: 'wake_state.next_allowed_at', as: 'ago' },
    { header: 'Policy', path: 'policy_digest' },
    { header: 'Configuration', path: 'config_digest' },
  ],
  table: {
    path: 'diagnostics',
    columns: [
      { header: 'SEVERITY', path: 'severity' },
      { header: 'LINE', path: 'line' },
      { header: 'FIELD', path: 'field' },
      { header: 'MESSAGE', path: 'message', below: true },
    ],
  },
}

/** Tokens and cost, as far as the agent told of them. */
export const usageView: CliView = {
  item: 'usage',
  fields: [
    { header: 'Turns', path: 'turn_count' },
    { header: 'Input tokens', path: 'input_tokens' },
    { header: 'Output tokens', path: 'output_tokens' },
    { header: 'All tokens', path: 'total_tokens' },
    { header: 'Cost', path: 'total_cost' },
    { header: 'Currency', path: 'cost_currency' },
    {
      header: 'Cost',
      path: 'cost_source',
      words: { none: 'not reported by the agent', agent_reported: 'reported by the agent' },
    },
  ],
}

/** What an interrupted transcript left open, and what was closed. */
export const repairView: CliView = {
  item: 'repair',
  fields: [
    { header: 'Session', path: 'session_id' },
    { header: 'Written', path: 'persisted' },
    { header: 'Closed', path: 'actions.length' },
  ],
  table: {
    path: 'issues',
    columns: [
      { header: 'SEVERITY', path: 'severity' },
      { header: 'TURN', path: 'turn_id' },
      { header: 'CODE', path: 'code' },
      { header: 'DETAIL', path: 'detail', below: true },
    ],
  },
}
