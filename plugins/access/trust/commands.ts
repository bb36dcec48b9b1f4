import path from 'node:path'
import { command } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { WorkspaceTrustReply } from '../../../schemas/workspaces/trust.js'

/** `workspace trust`: lists the files and trusts their current content. */
export async function run({ client, out, args, cwd }: CommandContext): Promise<void> {
  const named = String(args.workspace)
  const workspace = /^\.|\//.test(named) ? path.resolve(cwd, named) : named
  const at = `/api/workspaces/${encodeURIComponent(workspace)}/trust`
  const { trust } = (await client.request('GET', at)) as WorkspaceTrustReply
  if (trust.state === 'trusted' || trust.state === 'empty') {
    if (out.json) return out.value({ trust })
    return out.line(trust.state === 'empty' ? 'nothing in this workspace needs trust' : 'already trusted')
  }
  const reply = (await client.request('PUT', at, { digest: trust.digest })) as WorkspaceTrustReply
  if (out.json) return out.value(reply)
  out.line(`trusted ${trust.files.length} file${trust.files.length === 1 ? '' : 's'}:`)
  for (const file of trust.files) out.line(`  ${file}`)
  const withdraw = command('workspace untrust', workspace)
  out.line(`If one of these files changes, you are asked again. To withdraw the trust: ${withdraw}`)
}
