import { cli, columnsOf, tool } from '../../../../kernel/kit/annotations/index.js'
import { ok, type Route } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { snapshotOf } from '../goal/snapshot.js'
import type { SessionsService } from '../service.js'
import { find, id, ONE, readingJournal } from './common.js'

/** The goal of a session; prompts that begin with `/goal` set and change it. */
export const goalRoutes: readonly Route<SessionsService>[] = [
  readingJournal({
    method: 'GET',
    path: `${ONE}/goal`,
    origins: ['agent_session'],
    summary: 'Show the goal of a session and its progress',
    replies: { 200: schemas.SessionGoalReply },
    with: [
      cli('session goal', {
        args: [id],
        find,
        view: {
          item: 'goal',
          fields: [
            ...columnsOf<schemas.GoalSnapshot>()([
              { of: 'objective', header: 'Goal' },
              'status',
              { of: 'cause', header: 'Because' },
              { of: 'turns_used', header: 'Turns' },
              { of: 'turn_limit', header: 'Of at most' },
              { of: 'last_verdict.outcome', header: 'Last verdict' },
            ]),
            { header: 'Missing', path: 'last_verdict.blocking_issues.0.note' },
          ],
        },
      }),
      tool('goal_status', ['sessions']),
    ],
    handle: async (service, { params }) => {
      const row = service.find(params.session_id, params.workspace_id)
      return ok({ goal: await snapshotOf(service.context, row) })
    },
  }),
]
