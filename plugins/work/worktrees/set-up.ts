import { messageOf, type Setting } from '../../../kernel/plugin.js'
import { type SessionWorktree, workingFolderOf } from './api.js'
import { environmentOf } from './git.js'
import type { K } from './needs.js'
import { runProgram } from './program.js'
import { WorktreeSettings } from './settings.js'

/** Value of a setting in a workspace. */
export async function settingOf<T>(kernel: K, setting: Setting<T>, workspaceId: string): Promise<T> {
  return (await kernel.needs.settings.current?.valueIn(setting, workspaceId)) ?? kernel.config.get(setting)
}

/**
 * Runs the setup program of the workspace in a new worktree. Throws `worktree_failed` (409), with the last output of the program.
 */
export function setUp(kernel: K, worktree: SessionWorktree, source: string): Promise<void> {
  return run(kernel, WorktreeSettings.setup, worktree, { SVC_WORKTREE_SOURCE: source })
}

/** Runs the teardown program before a worktree is removed. A failure does not prevent the removal. */
export async function tearDown(kernel: K, worktree: SessionWorktree): Promise<void> {
  await run(kernel, WorktreeSettings.teardown, worktree, {}).catch(error =>
    kernel.log.warn(`the teardown of worktree ${worktree.folder} failed: ${messageOf(error)}`),
  )
}

async function run(
  kernel: K,
  setting: Setting<string[]>,
  worktree: SessionWorktree,
  more: Readonly<Record<string, string>>,
): Promise<void> {
  const argv = await settingOf(kernel, setting, worktree.workspaceId ?? '')
  if (argv.length === 0) return
  const { folder, branch } = worktree
  const env = { ...(await environmentOf(kernel)), SVC_WORKTREE: folder, SVC_WORKTREE_BRANCH: branch, ...more }
  const within = WorktreeSettings.setupTimeout
  await runProgram(kernel, { label: setting.path, argv, cwd: workingFolderOf(worktree), env, within })
}
