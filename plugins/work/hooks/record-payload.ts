import type { HookEvent } from '../../../schemas/hooks.js'
import type { Recorded } from '../sessions/api.js'
import type { Fixed, HookPayload } from './api.js'
import { familyOf } from './families.js'

/** Kinds of agent tools that only read. */
const READING = ['read', 'search', 'fetch', 'think']

export const isReading = (toolKind: string): boolean => READING.includes(toolKind)

/** The hook payload of a journal record, without the members of its session. Matchers can use every member but `content`. */
export function recordedPayload(
  event: HookEvent,
  { type, turnId, content, source }: Omit<Recorded, 'sessionId'>,
): HookPayload {
  const family = familyOf(event)
  const kind = typeof content.kind === 'string' ? content.kind : undefined
  return {
    ...{ turn_id: turnId, acp_event_type: type },
    ...(kind !== undefined && { tool_name: kind }),
    ...(kind !== undefined && family === 'tool' && { tool_read_only: isReading(kind) }),
    ...(kind !== undefined && family === 'permission' && { decision_class: kind }),
    ...(family === 'turn' && { input_class: source ?? 'user' }),
    ...(type === 'user_message' && { message_role: 'user' }),
    ...(type === 'agent_message' && { message_role: 'assistant' }),
    ...(family === 'message' && { message_delta_type: 'text' }),
    ...(family === 'context' && { compaction_reason: content.reason, compaction_strategy: content.strategy }),
    content,
  }
}

/** The namespace in the ID of a daemon tool: `service`, `ext__<extension>` or `mcp__<server>`. */
export function namespaceOf(toolId: string): string {
  const [first = '', second = ''] = toolId.split('__')
  return first === 'ext' || first === 'mcp' ? `${first}__${second}` : first
}

/** The tool ID for a patched name and namespace. A name with its namespace, `ext__github__search`, is an ID. */
export function toolIdOf(toolId: string, name: string, namespace: string): string {
  const before = namespaceOf(toolId)
  const id = name === toolId ? toolId.slice(before.length + 2) : name
  if (id.includes('__') && namespace === before) return id
  return `${namespace}__${id}`
}

/** The journal keeps actions of the agent itself unchanged. */
export const RECORDED: Fixed = {
  members: ['title', 'result', 'error'],
  why: 'the agent has already run this tool itself',
}
