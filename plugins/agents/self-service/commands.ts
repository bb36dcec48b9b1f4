import type { CommandContext } from '../../../kernel/plugin.js'
import type { AgentMeReply, SpawnReply } from '../../../schemas/sessions/self-service.js'

const DEFAULT_TTL_SECONDS = 3600

/** `svc spawn <agent>`: the child gets only the rights that are given. */
export async function runSpawn({ args, options, client, out }: CommandContext): Promise<void> {
  const { role = 'worker', ttl = DEFAULT_TTL_SECONDS, name, model, overlay, keep, sandbox } = options
  const { me } = (await client.request('GET', '/api/agent/me')) as AgentMeReply
  const root = me.workspace.root_dir
  const key = options['idempotency-key']
  const body = {
    agent_name: args.agent,
    auto_stop_on_parent: keep !== true,
    spawn_role: role,
    ttl_seconds: ttl,
    permissions: {
      tools: listOf(options.tools),
      skills: [],
      mcp_servers: listOf(options['mcp-servers']),
      workspace_paths: options.paths === undefined && root !== undefined ? [root] : listOf(options.paths),
      network_channels: [],
      sandbox_profiles: listOf(sandbox),
    },
    ...(name !== undefined && { name }),
    ...(model !== undefined && { model }),
    ...(overlay !== undefined && { prompt_overlay: overlay }),
    ...(key !== undefined && { idempotency_key: key }),
  }
  const reply = (await client.request('POST', '/api/agent/spawn', body)) as SpawnReply
  if (out.json) return out.value(reply)
  const { session, lineage } = reply.spawn
  out.id(session.id)
  out.line(`spawned ${session.id} (${session.agent_name}, ${lineage.spawn_role}, until ${lineage.ttl_expires_at})`)
}

const listOf = (text: unknown): string[] =>
  typeof text === 'string'
    ? text
        .split(',')
        .map(word => word.trim())
        .filter(Boolean)
    : []
