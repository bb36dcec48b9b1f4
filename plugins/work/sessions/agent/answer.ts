import { type Actor, messageOf } from '../../../../kernel/plugin.js'
import type { ApproveBody } from '../../../../schemas/sessions.js'
import type { Permissions } from '../../acp/api.js'
import { AcpErrors } from '../../acp/api.js'
import { PermissionAnswered } from '../api.js'
import type { K } from '../needs.js'
import type { SessionRow } from '../table.js'

/**
 * Answers a permission request and emits an event; resolves to whether it was allowed in the end. @throws Fault
 * `permission_not_found`
 */
export async function answerPermission(
  { db, needs, log }: K,
  permissions: Permissions | undefined,
  { id, workspace_id }: SessionRow,
  { request_id, turn_id, decision }: ApproveBody,
  actor: Actor,
): Promise<boolean> {
  if (!permissions) throw AcpErrors.permission_not_found()
  const allowed = await permissions.answer(request_id, turn_id, decision, actor)
  const payload = { session_id: id, request_id, decision, allowed }
  const about = { actor, scope: workspace_id, subject: id }
  // The agent already has the answer, so a failure to store the event must not reach the person as an error.
  await db
    .tx(t => needs.events.emit(t, PermissionAnswered, payload, about))
    .catch(error => log.error(`the answer to ${request_id} of ${id} is no event: ${messageOf(error)}`))
  return allowed
}
