import { type CliColumn, type CliView, columnsOf, show } from '../../../kernel/kit/annotations/index.js'
import {
  type InspectSessionReply,
  type PolicyDiagnostic,
  type RepairIssue,
  type RepairSessionReply,
  type SessionHealth,
  SessionUsageReply,
} from '../../../schemas/sessions.js'

/** Reasons for which a session is not woken, in words. */
const ineligibility: Readonly<Record<string, string>> = {
  session_prompt_active: 'a prompt is running',
  session_not_attachable: 'it has ended',
  session_unhealthy: 'its agent is unhealthy',
  session_health_stale: 'its agent has shown no activity recently',
  session_health_hung: 'its agent does not respond',
  session_health_dead: 'its agent has ended',
  session_health_unknown: 'the state of its agent is unknown',
}

/** Columns of the session status. */
export const statusFields = columnsOf<SessionHealth>()([
  { of: 'session_id', header: 'ID' },
  { of: 'agent_name', header: 'Agent' },
  'state',
  'health',
  { of: 'active_prompt', header: 'Prompt running' },
  { of: 'eligible_for_wake', header: 'Can be woken' },
  { of: 'ineligibility_reason', header: 'Not woken because', words: ineligibility },
  'updated_at~ago',
])

/** Columns of the session health. */
export const healthFields: readonly CliColumn[] = [
  ...statusFields.slice(0, -1),
  ...columnsOf<SessionHealth>()([
    { of: 'attachable', header: 'Can be attached' },
    'last_error',
    'last_activity_at~ago',
  ]),
  ...statusFields.slice(-1),
]

/** Diagnostic view of a session. */
export const inspectView: CliView = {
  item: '',
  fields: [
    ...healthFields.map(column => ({ ...column, path: `health.${column.path}` })),
    ...columnsOf<InspectSessionReply>()([
      { of: 'wake_state.last_wake_at~ago', header: 'Last woken' },
      { of: 'wake_state.last_result', header: 'Last wake-up', words: { rate_limited: 'too many lately' } },
      { of: 'wake_state.next_allowed_at~ago', header: 'Woken again from' },
      { of: 'policy_digest', header: 'Policy' },
      { of: 'config_digest', header: 'Configuration' },
    ]),
  ],
  table: {
    path: 'diagnostics',
    columns: columnsOf<PolicyDiagnostic>()(['severity', 'line', 'field', { of: 'message', below: true }]),
  },
}

/** Tokens and cost, as far as the agent reports them. */
export const usageView = show(SessionUsageReply, 'usage', [
  { of: 'turn_count', header: 'Turns' },
  'input_tokens',
  'output_tokens',
  { of: 'total_tokens', header: 'All tokens' },
  { of: 'total_cost', header: 'Cost' },
  { of: 'cost_currency', header: 'Currency' },
  {
    of: 'cost_source',
    header: 'Cost',
    words: { none: 'not reported by the agent', agent_reported: 'reported by the agent' },
  },
])

/** Open items of an interrupted transcript, and those that the repair closed. */
export const repairView: CliView = {
  item: 'repair',
  fields: [
    ...columnsOf<RepairSessionReply['repair']>()(['session_id', { of: 'persisted', header: 'Written' }]),
    { header: 'Closed', path: 'actions.length' },
  ],
  table: {
    path: 'issues',
    columns: columnsOf<RepairIssue>()([
      'severity',
      { of: 'turn_id', header: 'Turn' },
      'code',
      { of: 'detail', below: true },
    ]),
  },
}
