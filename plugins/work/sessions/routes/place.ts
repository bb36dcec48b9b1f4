/** What all routes of sessions share. */

export const area = 'Sessions'
/** The path of one session in its workspace. */
export const ONE = '/api/workspaces/{workspace_id}/sessions/{session_id}'

/** The workspace of a session is found, never typed. */
export const find = { workspace_id: { path: '/api/sessions/{session_id}/owner', pick: 'workspace_id' } } as const
export const id = { name: 'session_id', in: 'path' } as const

/** A session as a person sees it. */
export const fields = [
  { header: 'ID', path: 'id' },
  { header: 'Name', path: 'name' },
  { header: 'Agent', path: 'agent_name' },
  { header: 'Workspace', path: 'workspace_path' },
  { header: 'State', path: 'state' },
  { header: 'Badge', path: 'badge' },
  { header: 'Stopped because', path: 'stop_reason' },
  { header: 'Detail', path: 'stop_detail' },
  { header: 'Failure', path: 'failure.summary' },
  { header: 'Crash bundle', path: 'failure.crash_bundle_path' },
  { header: 'Model', path: 'model' },
  { header: 'Permissions', path: 'permissions' },
  { header: 'Doing', path: 'activity.last_activity_kind' },
  { header: 'Tool', path: 'activity.current_tool' },
  { header: 'Attached', path: 'attached_to' },
  { header: 'Created', path: 'created_at', as: 'time' },
  { header: 'Updated', path: 'updated_at', as: 'ago' },
] as const
