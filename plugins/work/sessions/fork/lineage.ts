import type { SessionLineage } from '../../../../schemas/sessions.js'

/** The lineage of a fork. It is not a child: it has the rights of any session and its own lifetime. */
export function forkLineage(from: string): SessionLineage {
  return {
    parent_session_id: from,
    spawn_role: 'fork',
    spawn_depth: 0,
    spawn_budget: { max_children: 0, max_depth: 0, ttl_seconds: 0 },
    permission_policy: {
      mcp_servers: [],
      network_channels: [],
      sandbox_profiles: [],
      skills: [],
      tools: [],
      workspace_paths: [],
    },
    auto_stop_on_parent: false,
  }
}
