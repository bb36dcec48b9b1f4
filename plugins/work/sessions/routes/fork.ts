import { throws } from '../../../../kernel/kit/annotations/index.js'
import { created, type Route } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { SandboxErrors } from '../../../access/sandboxes/api.js'
import { undo } from '../../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { WorktreeErrors } from '../../worktrees/api.js'
import { SessionErrors } from '../api.js'
import { forkSession } from '../fork/fork.js'
import { CREATE_ERRORS } from '../refusals.js'
import type { SessionsService } from '../service.js'
import { ONE, route } from './common.js'

/** The route that forks a session. */
export const forkRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'POST',
    path: `${ONE}/worktree-fork`,
    with: [
      undo({ by: 'never', why: 'the effects of the session are not undone; stop it: svc session stop' }),
      throws(
        ...CREATE_ERRORS,
        SandboxErrors.sandbox_weaker,
        ...REFERENCE_ERRORS,
        SessionErrors.session_not_found,
        SessionErrors.fork_unconfirmed,
        WorktreeErrors.worktree_invalid,
        WorktreeErrors.worktree_failed,
        SessionErrors.session_journal_damaged,
      ),
    ],
    summary: 'Fork a conversation into a new session in its own git worktree',
    body: schemas.ForkSessionBody,
    replies: { 201: schemas.SessionDetailReply },
    handle: async (service, { params, body, actor, id: cause }) => {
      const row = service.find(params.session_id, params.workspace_id)
      const made = await forkSession(service.context, row, body, { ...actor, cause: actor.cause ?? cause })
      return created({ session: service.wire.detail(service.find(made)) })
    },
  }),
]
