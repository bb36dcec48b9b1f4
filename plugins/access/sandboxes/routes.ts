import { describe, throws } from '../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../kernel/kit/collection.js'
import { ok, type Route, routeOf } from '../../../kernel/plugin.js'
import * as schemas from '../../../schemas/sessions/sandboxes.js'
import { undo } from '../../desk/changes/api.js'
import { SandboxErrors } from './api.js'
import type { SandboxesService } from './service.js'

const about = describe('Sandboxes')
const route = routeOf<SandboxesService>(about)
const session = [
  { of: 'session_id', header: 'Session' },
  { of: 'agent_name', header: 'Agent' },
] as const
const state = ['profile', 'network', 'state'] as const

const sandbox = collectionOf<SandboxesService>(about)({
  path: '/api/sandboxes',
  key: 'session_id',
  noun: 'sandbox',
  one: [schemas.SandboxReply, 'sandbox'],
  many: [schemas.ListSandboxesReply, 'sandboxes'],
  show: [...session, ...state],
  fields: [...session, 'backend', ...state, 'commands'],
  missing: SandboxErrors.sandbox_not_found,
})

/** Default time limit of a command in seconds. */
const EXEC_SECONDS = 60

/** Routes for the sandboxes of sessions. */
export const sandboxRoutes: readonly Route<SandboxesService>[] = [
  sandbox.list({
    summary: 'List the sandboxes of active sessions',
    query: schemas.ListSandboxesQuery,
    empty: 'no session runs in a sandbox',
    handle: (service, { query }) => ({ sandboxes: service.list(query.workspace_id) }),
  }),
  sandbox.get({
    summary: 'Show the sandbox of a session',
    handle: (service, { params }) => service.info(params.session_id),
  }),
  route({
    method: 'POST',
    path: '/api/sandboxes/{session_id}/exec',
    with: [
      undo({ by: 'never', why: 'the effects of the command are not undone' }),
      throws(
        SandboxErrors.sandbox_not_found,
        SandboxErrors.sandbox_not_running,
        SandboxErrors.sandbox_crowded,
        SandboxErrors.sandbox_folder_outside,
        SandboxErrors.sandbox_command_unstarted,
      ),
    ],
    summary: 'Run a command in the sandbox of a session with a running agent',
    body: schemas.ExecInSandboxBody,
    replies: { 200: schemas.ExecInSandboxReply },
    handle: async (service, { params, body, signal }) => {
      const { argv, cwd, timeout_seconds: seconds = EXEC_SECONDS } = body
      return ok(await service.exec(params.session_id, { argv, cwd, timeoutMs: seconds * 1000, signal }))
    },
  }),
]
