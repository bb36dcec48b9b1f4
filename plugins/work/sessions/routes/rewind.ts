import { cli, throws } from '../../../../kernel/kit/annotations/index.js'
import { ok, type Route } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { undo } from '../../../desk/changes/api.js'
import { SessionErrors } from '../api.js'
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

/** Errors of a change that waits for the end of a turn, and is refused during one. */
const idle = [
  SessionErrors.session_not_found,
  SessionErrors.session_archived,
  SessionErrors.session_busy,
  SessionErrors.session_journal_damaged,
  SessionErrors.session_stopped,
]

/** Routes that remove parts of a conversation. */
export const rewindRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'POST',
    path: `${ONE}/clear`,
    summary: 'Clear the conversation of a session; files are kept',
    replies: { 200: schemas.SessionReply },
    with: [
      undo({ by: 'never', why: 'the agent forgot the conversation; its events are kept: svc session events' }),
      throws(...idle),
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
      throws(...idle, SessionErrors.message_not_found, SessionErrors.rewind_conflict, SessionErrors.transcript_changed),
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
