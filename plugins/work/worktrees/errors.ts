import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../kernel/plugin.js'

export const WorktreeErrors = defineErrors({
  worktree_invalid: { status: 400, message: 'this cannot be a worktree', next: 'git worktree list' },
  worktree_not_found: { status: 404, message: 'no such worktree', next: command('worktree list') },
  worktree_failed: {
    status: 409,
    message: 'the worktree cannot be made',
    next: 'correct what the message names; no worktree and no branch were left behind',
  },
})
