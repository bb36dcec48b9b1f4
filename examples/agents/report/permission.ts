import {
  type AgentContext,
  methods,
  type PermissionOption,
  type RequestPermissionRequest,
  type ToolCallUpdate,
} from '@agentclientprotocol/sdk'
import type { Session } from './sessions.js'

export const PERMISSION_OPTIONS: readonly PermissionOption[] = [
  { optionId: 'allow-once', name: 'Allow once', kind: 'allow_once' },
  { optionId: 'allow-always', name: 'Allow for this session', kind: 'allow_always' },
  { optionId: 'reject-once', name: 'Reject once', kind: 'reject_once' },
  { optionId: 'reject-always', name: 'Reject for this session', kind: 'reject_always' },
]

/**
 * Asks the user, through the client, whether a tool call may go ahead. `subject` is what an answer "always" is
 * remembered for. A client that cannot ask has not allowed it. Rejects with the signal's reason when that aborts.
 */
export async function askPermission(
  client: AgentContext,
  session: Session,
  subject: string,
  toolCall: ToolCallUpdate,
  signal: AbortSignal,
): Promise<'allowed' | 'rejected' | 'cancelled'> {
  signal.throwIfAborted()
  const params: RequestPermissionRequest = { sessionId: session.id, toolCall, options: [...PERMISSION_OPTIONS] }
  const cancellable = { cancellationSignal: signal, stopWaitingOnCancel: true }
  try {
    const { outcome } = await client.request(methods.client.session.requestPermission, params, cancellable)
    if (outcome.outcome === 'cancelled') return 'cancelled'
    // By kind, and an answer that was never offered allows nothing.
    const kind = PERMISSION_OPTIONS.find(option => option.optionId === outcome.optionId)?.kind ?? 'reject_once'
    const decision = kind === 'allow_once' || kind === 'allow_always' ? 'allowed' : 'rejected'
    if (kind === 'allow_always' || kind === 'reject_always') session.decisions.set(subject, decision)
    return decision
  } catch (error) {
    signal.throwIfAborted()
    console.error(`permission_not_answered: ${error}`)
    return 'rejected'
  }
}
