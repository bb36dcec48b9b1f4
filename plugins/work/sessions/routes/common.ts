import { type Column, columnsOf, describe, type Member, throws } from '../../../../kernel/kit/annotations/index.js'
import { routeOf } from '../../../../kernel/plugin.js'
import type { Session } from '../../../../schemas/sessions.js'
import { SessionErrors } from '../api.js'
import type { SessionsService } from '../service.js'

/** Definitions shared by all routes of sessions. */

export const about = describe('Sessions')
export const route = routeOf<SessionsService>(about)
/** A route whose only error is an unknown session. */
export const reading = routeOf<SessionsService>(about, throws(SessionErrors.session_not_found))
/** A route whose only errors are an unknown session and an unreadable journal. */
export const readingJournal = routeOf<SessionsService>(
  about,
  throws(SessionErrors.session_not_found, SessionErrors.session_journal_damaged),
)
/** The path of one session in its workspace. */
export const ONE = '/api/workspaces/{workspace_id}/sessions/{session_id}'

/** Clients look up the workspace of a session, so that a person need not enter it. */
export const find = { workspace_id: { path: '/api/sessions/{session_id}/owner', pick: 'workspace_id' } } as const
export const id = { name: 'session_id', in: 'path' } as const

/** Columns of a session for people. */
export const FIELDS: readonly Column<Member<Session>>[] = [
  'id',
  'name',
  { of: 'agent_name', header: 'Agent' },
  { of: 'workspace_path', header: 'Workspace' },
  'state',
  'badge',
  { of: 'stop_reason', header: 'Stopped because' },
  { of: 'stop_detail', header: 'Detail' },
  { of: 'failure.summary', header: 'Failure' },
  { of: 'failure.crash_bundle_path', header: 'Crash bundle' },
  'model',
  'permissions',
  { of: 'activity.last_activity_kind', header: 'Doing' },
  { of: 'activity.current_tool', header: 'Tool' },
  { of: 'attached_to', header: 'Attached' },
  'created_at~time',
  'updated_at~ago',
]
export const fields = columnsOf<Session>()(FIELDS)
