import type { Undo } from '../../../desk/changes/api.js'

const pathOf = ({ workspace_id, session_id }: Readonly<Record<string, string>>) =>
  `/api/workspaces/${workspace_id}/sessions/${session_id}`

/** The way back into the archive, or out of it. No read shows which it is: the request is refused where it is so already. */
export const archiveUndo = (back: 'archive' | 'unarchive'): Undo => ({
  by: 'custom',
  reads: () => [],
  request: ({ params }) => ({ method: 'POST', path: `${pathOf(params)}/${back}` }),
})
