import type { CommandContext } from '../../../kernel/plugin.js'
import type { CoordinationReply } from '../../../schemas/network/coordination.js'

const urlOf = (workspace: unknown) => `/api/workspaces/${encodeURIComponent(String(workspace))}/network-coordination`

export { runAgentReceive, runAgentReply, runAgentSend, runSend, runWatch } from './agent/commands.js'

/** Updates the current revision of a workspace's or task's record. */
async function change(context: CommandContext, to: string, wish: Record<string, boolean>, said: string): Promise<void> {
  const { client, options, out, fault } = context
  const { workspace, task } = options
  if (workspace === undefined) return fault('usage', 'name the workspace: --workspace <id, name or path>')
  const url = urlOf(workspace)
  const target = task === undefined ? { scope: 'workspace' } : { scope: 'task', task_id: String(task) }
  const query = new URLSearchParams(target as Record<string, string>)
  const { coordination } = (await client.request('GET', `${url}?${query}`)) as CoordinationReply
  const body = { ...target, ...wish, expected_revision: coordination.revision }
  const reply = (await client.request('PUT', `${url}${to}`, body)) as CoordinationReply
  if (out.json) out.value(reply)
  else out.line(`${said} of ${task === undefined ? `the workspace ${workspace}` : `the task ${task}`}`)
}

/** `svc network coordination enable` */
export const runEnable = (context: CommandContext) =>
  change(context, '', { enabled: true }, 'coordination is on for future runs')

/** `svc network coordination disable` */
export const runDisable = (context: CommandContext) =>
  change(context, '', { enabled: false }, 'coordination is off for future runs')

/** `svc network invitation dismiss` */
export const runDismiss = (context: CommandContext) =>
  change(context, '/invitation', { dismissed: true }, 'dismissed the invitation')

/** `svc network invitation reset` */
export const runReset = (context: CommandContext) =>
  change(context, '/invitation', { dismissed: false }, 'opened the invitation')
