import { HOOK_FAMILIES, type HookEvent, type HookFamily } from '../../../schemas/hooks.js'
import { SessionType } from '../../../schemas/sessions/session.js'

export type { HookFamily }

export const familyOf = (event: HookEvent): HookFamily =>
  HOOK_FAMILIES.find(family => event.startsWith(`${family}.`)) ?? 'worktree'

const locationFields = ['agent_name', 'workspace_id', 'workspace_root'] as const
const autonomy = [...locationFields, 'autonomy'] as const

/** Matcher fields by event family. */
const matcherFields: Readonly<Record<HookFamily, readonly string[]>> = {
  session: [...locationFields, 'session_type'],
  input: [...locationFields, 'input_class'],
  prompt: [...locationFields, 'input_class'],
  turn: [...locationFields, 'input_class'],
  event: ['agent_name', 'acp_event_type', 'turn_id'],
  automation: ['agent_name', 'workspace_id'],
  agent: locationFields,
  tool: ['tool_name', 'tool_namespace', 'tool_id', 'tool_read_only'],
  permission: ['tool_name', 'decision_class'],
  message: ['message_role', 'message_delta_type'],
  context: ['compaction_reason', 'compaction_strategy'],
  network: ['channel', 'surface', 'kind', 'direction', 'work_state'],
  coordinator: autonomy,
  'task.run': autonomy,
  spawn: autonomy,
  task: autonomy,
  loop: autonomy,
  sandbox: ['workspace_id', 'sandbox_backend', 'sandbox_id', 'sandbox_profile', 'sync_direction'],
  window_manager: ['workspace_id'],
  worktree: ['workspace_id', 'workspace_root'],
}

/** Participation events have their own matcher fields. */
const participationFields = ['workspace_id', 'channel', 'participation_mode', 'participation_source'] as const

/** The matcher fields of an event. */
export const fieldsOf = (event: HookEvent): readonly string[] =>
  event.startsWith('network.participation.') ? participationFields : matcherFields[familyOf(event)]

/** Kinds of operation that an agent asks permission for. Source: `ToolKind` of ACP. */
export const OPERATIONS: readonly string[] = [
  ...['read', 'edit', 'delete', 'move', 'search', 'execute', 'think', 'fetch', 'switch_mode', 'other'],
]

/** Matcher fields with a closed vocabulary. */
const VOCABULARIES: Readonly<Partial<Record<HookFamily, Readonly<Record<string, readonly string[]>>>>> = {
  session: { session_type: SessionType.options },
  permission: { tool_name: OPERATIONS, decision_class: OPERATIONS },
  message: { message_role: ['user', 'assistant'], message_delta_type: ['text'] },
}

/** The vocabulary of a matcher field; undefined for an open one. */
export const vocabularyOf = (event: HookEvent, field: string): readonly string[] | undefined =>
  VOCABULARIES[familyOf(event)]?.[field]
