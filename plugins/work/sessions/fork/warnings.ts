import type { WorktreeInUse } from '../../worktrees/api.js'
import type { SessionLog } from '../journal/session-log.js'

/** Records the missing parts of a worktree as warnings. */
export function warnOf(log: Pick<SessionLog, 'append'>, { warnings = [] }: Partial<WorktreeInUse>): void {
  for (const text of warnings)
    log.append({ type: 'runtime_warning', turnId: '', content: { warning: 'worktree', text } })
}
