import type { SessionLog } from '../journal/session-log.js'
import type { SessionWorktree, WorktreeInUse } from './api.js'

/** Where sessions work in a worktree. */
export const placeOf = ({ place, folder }: SessionWorktree): string => place ?? folder

/** Tells a session what its worktree lacks. */
export function warnOf(log: Pick<SessionLog, 'append'>, { warnings = [] }: Partial<WorktreeInUse>): void {
  for (const text of warnings)
    log.append({ type: 'runtime_warning', turnId: '', content: { warning: 'worktree', text } })
}
