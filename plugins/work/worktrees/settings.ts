import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'
import { Duration } from '../../../schemas/duration.js'

const limit = (path: string): Setting<number> => ({
  path,
  section: 'general',
  schema: Duration,
  default: 600_000,
  apply: 'live',
})
const inWorkspaces = { section: 'general', apply: 'live', overlay: true } as const
const texts = (most: number) =>
  v.pipe(v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(1024))), v.maxLength(most))

/**
 * Contents of a new git worktree beside the committed files; a trusted workspace may set them itself. Durations in milliseconds.
 */
export const WorktreeSettings = {
  /** Patterns as in `.gitignore`: ignored files of the workspace that are copied. */
  carry: { path: 'session.worktree.carry', schema: texts(100), default: [], ...inWorkspaces } as Setting<string[]>,
  /** A program and its arguments, started in the new worktree; empty: none. */
  setup: { path: 'session.worktree.setup', schema: texts(64), default: [], ...inWorkspaces } as Setting<string[]>,
  /** A program and its arguments, run before the daemon removes a worktree; empty: none. */
  teardown: { path: 'session.worktree.teardown', schema: texts(64), default: [], ...inWorkspaces } as Setting<string[]>,
  /** Limit of the setup and of the teardown program. */
  setupTimeout: limit('session.worktree.setup_timeout'),
  /** Limit of one git call, such as the checkout of all files. */
  gitTimeout: limit('session.worktree.git_timeout'),
}
