import type { CommandContext } from '../../../kernel/plugin.js'

/** Path of the session's routes, with the workspace looked up by the session ID. */
export async function sessionPath({ args, client }: CommandContext): Promise<string> {
  const id = encodeURIComponent(String(args.session_id))
  const owner = (await client.request('GET', `/api/sessions/${id}/owner`)) as { workspace_id: string }
  return `/api/workspaces/${encodeURIComponent(owner.workspace_id)}/sessions/${id}`
}
