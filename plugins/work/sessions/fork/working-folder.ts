import type { SessionLog } from '../journal/session-log.js'
import type { SessionWorktree, WorktreeInUse } from './api.js'

/** The working folder of sessions in a worktree. */
export const workingFolderOf = ({ place, folder }: SessionWorktree): string => place ?? folder

/** Records the missing parts of a worktree as warnings. */
export function warnOf(log: Pick<SessionLog, 'append'>, { warnings = [] }: Partial<WorktreeInUse>): void {
  for (const text of warnings)
    log.append({ type: 'runtime_warning', turnId: '', content: { warning: 'worktree', text } })
}
