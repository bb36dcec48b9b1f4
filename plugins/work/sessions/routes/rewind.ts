import { cli } from '../../../../kernel/kit/annotations/index.js'
import { ok, type Route } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { undo } from '../../../desk/changes/api.js'
import { END_PROCESS } from '../lifecycle/stopping.js'
import { clear, type Rewinding, rewind } from '../rewind/rewind.js'
import type { SessionsService } from '../service.js'
import { find, id, ONE, route } from './common.js'

/** Parts of the sessions plugin that a rewind uses. */
const rewinding = ({ context, prompting, open }: SessionsService): Rewinding => ({
  context,
  prompting,
  endProcess: async id => open.peek(id)?.binding.end(END_PROCESS),
})

/** Routes that remove parts of a conversation. */
export const rewindRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'POST',
    path: `${ONE}/clear`,
    summary: 'Clear the conversation of a session; files are kept',
    replies: { 200: schemas.SessionReply },
    with: [
      undo({ by: 'never', why: 'the agent forgot the conversation; its events are kept: svc session events' }),
      cli('session clear', { args: [id], find, view: { text: '{session.id} starts over with the next prompt' } }),
    ],
    handle: async (service, { params }) => {
      const row = service.find(params.session_id, params.workspace_id)
      await clear(rewinding(service), row.id)
      return ok({ session: service.wire.session(service.find(row.id)) })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/rewind`,
    with: [
      undo({ by: 'never', why: 'the agent forgot the later conversation; its events are kept: svc session events' }),
    ],
    summary: 'Rewind the conversation to before a prompt; changed files are kept and listed',
    body: schemas.RewindBody,
    replies: { 200: schemas.RewindSessionReply },
    handle: async (service, { params, body }) => {
      const row = service.find(params.session_id, params.workspace_id)
      const done = await rewind(rewinding(service), row.id, body)
      return ok({ rewind: done, session: service.wire.detail(service.find(row.id)) })
    },
  }),
]
