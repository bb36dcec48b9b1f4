import type { PatchSessionBody } from '../../../../schemas/sessions.js'
import type { PermissionMode } from '../../../agents/agents/api.js'
import type { SessionsContext } from '../context.js'
import { renameSession } from '../lifecycle/catalog.js'
import type { LiveSession } from '../lifecycle/live-session.js'
import type { SessionRow } from '../table.js'
import { checkedAgentMode } from './agent-mode.js'

/** Changes the name of a session, its permission mode and the mode of its agent. */
export async function changeSession(
  context: SessionsContext,
  row: SessionRow,
  live: LiveSession | undefined,
  { name, permissions, agent_mode: mode }: PatchSessionBody,
): Promise<void> {
  // The whole request is validated before any part of it is applied.
  const giveMode = mode === undefined ? undefined : checkedAgentMode(live, mode, permissions)
  // With a mode change the name may be unchanged or absent.
  const isNamed = permissions === undefined && mode === undefined
  if (isNamed || name !== row.name) await renameSession(context, row, name)
  if (permissions !== undefined) await changePermissions(context, row.id, live, permissions)
  await giveMode?.()
}

/** Changes the permission mode of a session, for later requests of the running agent and for its next start. */
async function changePermissions(
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
