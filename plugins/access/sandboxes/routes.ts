import { cli, describe } from '../../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf } from '../../../kernel/plugin.js'
import * as schemas from '../../../schemas/sessions/sandboxes.js'
import { undo } from '../../desk/changes/api.js'
import type { SandboxesService } from './service.js'

const route = routeOf<SandboxesService>(describe('Sandboxes'))
/** Seconds that a command has where nothing else is said. */
const EXEC_SECONDS = 60

/** Routes over the sandboxes of sessions. */
export const sandboxRoutes: readonly Route<SandboxesService>[] = [
  route({
    method: 'GET',
    path: '/api/sandboxes',
    summary: 'List the sandboxes of active sessions',
    query: schemas.ListSandboxesQuery,
    replies: { 200: schemas.ListSandboxesReply },
    with: [
      cli('sandbox list', {
        view: {
          rows: 'sandboxes',
          columns: [
            { header: 'SESSION', path: 'session_id' },
            { header: 'AGENT', path: 'agent_name' },
            { header: 'PROFILE', path: 'profile' },
            { header: 'NETWORK', path: 'network' },
            { header: 'STATE', path: 'state' },
          ],
          empty: 'no session runs in a sandbox',
        },
      }),
    ],
    handle: (self, { query }) => ok({ sandboxes: self.list(query.workspace_id) }),
  }),
  route({
    method: 'GET',
    path: '/api/sandboxes/{session_id}',
    summary: 'Show the sandbox of a session',
    replies: { 200: schemas.SandboxReply },
    with: [
      cli('sandbox show', {
        args: [{ name: 'session_id', in: 'path' }],
        view: {
          item: 'sandbox',
          fields: [
            { header: 'Session', path: 'session_id' },
            { header: 'Agent', path: 'agent_name' },
            { header: 'Backend', path: 'backend' },
            { header: 'Profile', path: 'profile' },
            { header: 'Network', path: 'network' },
            { header: 'State', path: 'state' },
            { header: 'Commands', path: 'commands' },
          ],
        },
      }),
    ],
    handle: (self, { params }) => ok(self.info(params.session_id)),
  }),
  route({
    method: 'POST',
    path: '/api/sandboxes/{session_id}/exec',
    with: [undo({ by: 'never', why: 'what a command has done stays done' })],
    summary: 'Run a command in the sandbox of a session with a running agent',
    body: schemas.ExecInSandboxBody,
    replies: { 200: schemas.ExecInSandboxReply },
    handle: async (self, { params, body, signal }) => {
      const { argv, cwd, timeout_seconds: seconds = EXEC_SECONDS } = body
      return ok(await self.exec(params.session_id, { argv, cwd, timeoutMs: seconds * 1000, signal }))
    },
  }),
]
