import type { PermissionMode } from '../../../agents/agents/api.js'
import type { SessionsContext } from '../context.js'
import type { LiveSession } from '../lifecycle/live-session.js'

/** Changes the permission mode of a session, for later requests of the running agent and for its next start. */
export async function changePermissions(
  { kernel, table }: SessionsContext,
  id: string,
  live: LiveSession | undefined,
  mode: PermissionMode,
): Promise<void> {
  await kernel.db.tx(t =>
    table.update(t, id, { permissions_asked: mode, permissions: mode, updated_at: kernel.clock.now() }),
  )
  const running = live?.binding.running
  if (!running) return
  running.permissions.mode = mode
  await running.agent.changeMode(running.asksIn(mode))
}
