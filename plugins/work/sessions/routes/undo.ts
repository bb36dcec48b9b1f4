import type { Undo } from '../../../desk/changes/api.js'

const pathOf = ({ workspace_id, session_id }: Readonly<Record<string, string>>) =>
  `/api/workspaces/${workspace_id}/sessions/${session_id}`

/** The undo of archive and unarchive. No state is read before: the request is refused when the session is in that state already. */
export const archiveUndo = (back: 'archive' | 'unarchive'): Undo => ({
  by: 'custom',
  reads: () => [],
  request: ({ params }) => ({ method: 'POST', path: `${pathOf(params)}/${back}` }),
})
