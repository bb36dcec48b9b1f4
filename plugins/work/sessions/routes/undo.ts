import type { Undo } from '../../../desk/changes/api.js'

/** The undo of archive and unarchive. No state is read before: the request is refused when the session is in that state already. */
export const archiveUndo = (back: 'archive' | 'unarchive'): Undo => ({
  by: 'custom',
  reads: () => [],
  request: ({ path }) => ({ method: 'POST', path: `${path.slice(0, path.lastIndexOf('/'))}/${back}` }),
})
