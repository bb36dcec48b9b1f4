import { cli, describe, tool } from '../../../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { snapshotOf } from '../goal/snapshot.js'
import type { SessionsService } from '../service.js'
import { area, find, id, ONE } from './place.js'

const route = routeOf<SessionsService>()

/** The goal of a session; prompts that begin with `/goal` set and change it. */
export const goalRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'GET',
    path: `${ONE}/goal`,
    origins: ['agent_session'],
    summary: 'Show the goal of a session and its progress',
    replies: { 200: schemas.SessionGoalReply },
    with: [
      describe(area),
      cli('session goal', {
        args: [id],
        find,
        view: {
          item: 'goal',
          fields: [
            { header: 'Goal', path: 'objective' },
            { header: 'Status', path: 'status' },
            { header: 'Because', path: 'cause' },
            { header: 'Turns', path: 'turns_used' },
            { header: 'Of at most', path: 'turn_limit' },
            { header: 'Last verdict', path: 'last_verdict.outcome' },
            { header: 'Missing', path: 'last_verdict.blocking_issues.0.note' },
          ],
        },
      }),
      tool('goal_status', ['sessions']),
    ],
    handle: async (self, { params }) => {
      const row = self.find(params.session_id, params.workspace_id)
      return ok({ goal: await snapshotOf(self.context, row) })
    },
  }),
]
