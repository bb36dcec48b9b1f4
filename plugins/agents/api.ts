import { defineErrors, token } from '../../kernel/plugin.js'
import type { Workspace } from '../workspaces/api.js'
import type { McpServerInput } from './frontmatter.js'

export type PermissionMode = 'deny-all' | 'approve-reads' | 'approve-all'

/** A parsed definition (Behaviour 4.1). */
export interface AgentDefinition {
  readonly name: string
  readonly prompt: string
  /** As written; split with shell quoting, never given to a shell. */
  readonly command?: string
  readonly provider?: string
  readonly model?: string
  readonly reasoningEffort?: string
  readonly permissions?: PermissionMode
  readonly tools: readonly string[]
  readonly toolsets: readonly string[]
  readonly denyTools: readonly string[]
  readonly categoryPath: readonly string[]
  readonly disabledSkills: readonly string[]
  readonly mcpServers: readonly McpServerInput[]
  /** Names of hooks that the file declares. */
  readonly hooks: readonly string[]
  readonly origin: 'global' | 'workspace'
  readonly source: 'workspace' | 'home' | 'builtin'
  /** `sha256:` and hex over the file's bytes. */
  readonly digest: string
  readonly path?: string
  readonly workspaceId?: string
}

/** A definition with everything that a process of it needs. */
export interface LaunchPlan {
  readonly definition: AgentDefinition
  readonly provider: string
  readonly model: string
  readonly argv: readonly string[]
  readonly permissions: PermissionMode
}

export interface AgentsApi {
  /** Valid definitions visible from a workspace (or globally), by precedence, first wins; sorted by name. */
  list(workspace?: Workspace): Promise<readonly AgentDefinition[]>
  /** Throws `agent_not_found` (404) or `agent_invalid` (422) naming the file and what is wrong in it. */
  find(name: string, workspace?: Workspace): Promise<AgentDefinition>
  /** What to start for it. Throws `agent_not_runnable` (422) with an install command when no provider can run it. */
  plan(name: string, workspace?: Workspace): Promise<LaunchPlan>
}

export const Agents = token<AgentsApi>('agents@1')

export const AgentErrors = defineErrors({
  agent_not_found: { status: 404, message: 'no such agent', next: 'svc agent list' },
  agent_invalid: { status: 422, message: 'the definition of this agent is not valid' },
  agent_not_runnable: {
    status: 422,
    message: 'nothing on this machine can run this agent',
    next: 'svc session new --agent report',
  },
})
