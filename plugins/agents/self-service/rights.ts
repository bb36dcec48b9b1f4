import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { covers } from '../../../kernel/kit/text.js'
import type { PermissionPolicy } from '../../../schemas/sessions.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { SessionInfo } from '../../work/sessions/api.js'
import type { AgentDefinition } from '../agents/api.js'
import { SpawnErrors } from './api.js'

/** The rights that a session can pass on. */
export interface Held {
  readonly session: SessionInfo
  readonly definition: AgentDefinition
  readonly workspace: Workspace
}

/**
 * Checks that a child gets only rights of its parent, and returns them with canonical paths: nothing is dropped
 * silently. A parent has the tools and MCP servers that its definition names (without named tools: those of its agent
 * and servers), and the folders of its workspace. Sessions cannot have skills or channels yet, so these are always
 * refused. Throws `spawn_rights_exceeded` (403), `spawn_invalid` (422).
 */
export async function checkedRights(policy: PermissionPolicy, held: Held): Promise<PermissionPolicy> {
  const { definition, workspace, session } = held
  const refuse = (kind: keyof PermissionPolicy, atom: string, has: readonly string[]): never => {
    const known = has.length === 0 ? 'none' : has.join(', ')
    throw SpawnErrors.spawn_rights_exceeded(
      `${kind}: ${JSON.stringify(atom)} is not a right of session ${session.id}; its rights: ${known}`,
    )
  }
  const servers = definition.mcpServers.map(({ name }) => name)
  const tools = definition.tools.length > 0 ? definition.tools : ['svc__*', ...servers.map(name => `mcp__${name}__*`)]
  for (const tool of policy.tools) {
    // A denied tool within a requested pattern is refused as well.
    const isDenied = definition.denyTools.some(pattern => covers(pattern, tool) || covers(tool, pattern))
    if (isDenied || !tools.some(pattern => covers(pattern, tool))) refuse('tools', tool, tools)
  }
  for (const name of policy.mcp_servers) if (!servers.includes(name)) refuse('mcp_servers', name, servers)
  for (const name of policy.skills) refuse('skills', name, [])
  for (const name of policy.network_channels) refuse('network_channels', name, [])
  const own = session.confinement?.kind === 'sandbox' ? session.confinement.profile : undefined
  for (const name of policy.sandbox_profiles)
    if (own !== undefined && name !== own) refuse('sandbox_profiles', name, [own])
  if (policy.workspace_paths.length === 0)
    throw SpawnErrors.spawn_invalid('workspace_paths: name at least one folder to work in')
  const roots = await Promise.all([workspace.rootDir, ...workspace.addDirs].map(real))
  const paths: string[] = []
  for (const wanted of policy.workspace_paths) {
    const folder = path.isAbsolute(wanted) ? await real(wanted) : undefined
    if (folder === undefined || !roots.some(root => root !== undefined && contains(root, folder))) {
      refuse('workspace_paths', wanted, [workspace.rootDir, ...workspace.addDirs])
    } else paths.push(folder)
  }
  return { ...policy, workspace_paths: [...new Set(paths)] }
}

const contains = (outer: string, inner: string) => inner === outer || inner.startsWith(`${outer}${path.sep}`)

const real = (folder: string) => realpath(folder).catch(() => undefined)

const MODES = ['deny-all', 'approve-reads', 'approve-all'] as const

/** The stricter of two modes. */
export const stricter = <M extends (typeof MODES)[number]>(one: M, other: M): M =>
  MODES.indexOf(one) <= MODES.indexOf(other) ? one : other
