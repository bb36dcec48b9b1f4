import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import {
  defineErrors,
  guard,
  hookTable,
  registry,
  type StoredRecord,
  type TapsOf,
  token,
} from '../../../kernel/plugin.js'
import type { Agent, AgentActivity, PutAgentBody } from '../../../schemas/agents.js'
import { TrustErrors } from '../../access/trust/api.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { AgentSpec } from './definition/agent-kind.js'
import type { AgentFolder } from './definition/files.js'
import type { HookInput, McpServerInput } from './definition/frontmatter.js'

export { AgentKind, AgentSpec } from './definition/agent-kind.js'
export { type AgentFolder, readDefinitionFile, stampOf } from './definition/files.js'
export { AGENT_NAME, RESERVED_NAMES } from './definition/frontmatter.js'

export type PermissionMode = 'deny-all' | 'approve-reads' | 'approve-all'

/** A parsed definition. */
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
  readonly hooks: readonly HookInput[]
  readonly origin: 'global' | 'workspace'
  readonly source: 'workspace' | 'home' | 'record' | 'contributed' | 'builtin'
  /** Unusable entries of its lists, each with its place and the reason. */
  readonly leftOut?: readonly string[]
  /** `sha256:` and hex over the file's bytes, or over the canonical spec of a record. */
  readonly digest: string
  readonly path?: string
  readonly workspaceId?: string
  /** Key of its extension: it runs and resolves secrets as that extension. */
  readonly extension?: string
  /** Its record, for the source `record`. */
  readonly record?: Pick<StoredRecord, 'id' | 'owner' | 'scope'>
}

/** A definition with everything that a process of it needs. */
export interface LaunchPlan {
  readonly definition: AgentDefinition
  readonly provider: string
  /** Model of the definition, else the provider's default; empty: the agent decides. */
  readonly model: string
  /**
   * Reasoning effort for a model: of the definition, else the operator's setting for the model; undefined: the agent
   * decides.
   */
  effortFor(model: string): string | undefined
  readonly argv: readonly string[]
  readonly permissions: PermissionMode
}

/** Warning for a mode that an agent's program does not enforce. */
export function unheldText(program: string, mode: PermissionMode): string {
  return `${program} never asks for permission: permissions=${mode} does not restrict its own tools, which edit files and run commands`
}

/** The hooks of agents. */
export const points = hookTable({
  deleting: guard<[definition: AgentDefinition]>(
    'deleting',
    'Before the file of a definition is deleted. A tap may refuse that.',
  ),
})

export interface AgentsApi extends TapsOf<typeof points> {
  /** Valid definitions visible from a workspace (or globally), by precedence, first wins; sorted by name. */
  list(workspace?: Workspace): Promise<readonly AgentDefinition[]>
  /** Throws `agent_not_found` (404) or `agent_invalid` (422) naming the file and what is wrong in it. */
  find(name: string, workspace?: Workspace): Promise<AgentDefinition>
  /** A definition as its route shows it. @throws Fault as `find` */
  shown(name: string, workspace?: Workspace): Promise<Agent>
  /**
   * Replaces the fields of a definition; the operation of its PUT route. @throws Fault `invalid_request`, `agent_changed`,
   * `agent_read_only`, and those of `find`
   */
  update(name: string, body: PutAgentBody): Promise<Agent>
  /** As `find`, with the folder of a definition file. */
  locate(
    name: string,
    workspace?: Workspace,
  ): Promise<{ readonly definition: AgentDefinition; readonly where?: AgentFolder | undefined }>
  /**
   * The plan for starting an agent. Throws `agent_not_runnable` (422) with an install command when no provider can run
   * it.
   * @param provider replaces the definition's provider, and with it the definition's model; a definition with its own
   *   command keeps that
   */
  plan(name: string, workspace?: Workspace, provider?: string): Promise<LaunchPlan>
  /** Whether files of a workspace may run code, because a person trusted their current content. Never throws. */
  mayRunFilesOf(workspace: Workspace): Promise<boolean>
}

export const Agents = token<AgentsApi>('agents@1')

/** The request that shows a definition, for the undo of a change of its fields. */
export const agentRequest = (name: string, workspaceId?: string): string =>
  `/api/agents/${encodeURIComponent(name)}${workspaceId === undefined ? '' : `?workspace=${encodeURIComponent(workspaceId)}`}`

/**
 * Parses an AGENT.md file to the spec of a record, with the entries that are left out. Rejects with the problem;
 * reserved names are accepted.
 */
export async function parseAgent(
  bytes: Uint8Array,
): Promise<{ readonly spec: AgentSpec; readonly leftOut: readonly string[] }> {
  // Imported on first use: the parsers are large.
  const { parseFile } = await import('./definition/definition-file.js')
  const { fields, prompt, leftOut } = parseFile(bytes)
  return { spec: { ...fields, prompt }, leftOut }
}

/**
 * Contributes past and present activity of agents in a workspace, for the catalog. A result is never changed: the same object means
 * the same activity.
 */
export interface ActivitySource {
  /** Names of working agents. */
  readonly active: (workspaceId: string) => ReadonlySet<string>
  /** Counts by name; a name may be absent. */
  readonly counts: (workspaceId: string, names: readonly string[]) => ReadonlyMap<string, AgentActivity>
}

/** Contributes folders with packaged definitions; definitions of people and records take precedence. */
export interface AgentSource {
  /** Folders with one folder per agent, the first of a name wins; links are followed inside `root`. */
  readonly folders: (
    workspace: Workspace | undefined,
  ) => readonly (Pick<AgentFolder, 'root' | 'folder' | 'digests'> & { readonly extension?: string })[]
}

export const AgentSourceFolders = registry<AgentSource>('agents.sources@1', v.looseObject({ folders: v.function() }))

export const AgentActivities = registry<ActivitySource>(
  'agents.activity@1',
  v.looseObject({ active: v.function(), counts: v.function() }),
)

export const AgentErrors = defineErrors({
  agent_not_found: { status: 404, message: 'no such agent', next: command('agent list') },
  agent_invalid: {
    status: 422,
    message: 'the definition of this agent is not valid',
    next: command('doctor', '--only', 'agents'),
  },
  agent_exists: { status: 409, message: 'an agent with this name already exists there', next: command('agent list') },
  agent_read_only: {
    status: 409,
    message: 'this definition cannot be changed here',
    next: command('agent list'),
  },
  agent_changed: {
    status: 409,
    message: 'the definition has changed since expected_digest; read it again and repeat',
    next: command('agent list'),
  },
  agent_workspace_missing: {
    status: 400,
    message: 'scope workspace needs a workspace: its id, name or path',
    next: command('workspace list'),
  },
  agent_unwritable: { status: 422, message: 'the definition cannot be written there', next: command('doctor') },
  agent_cursor_invalid: {
    status: 400,
    message: 'the cursor does not belong to this filter; start again without it',
    next: command('agent list'),
  },
  agent_activity_unavailable: {
    status: 503,
    message: 'the status of agents is not available now; list them without a status filter',
    next: command('doctor'),
  },
  agent_untrusted: {
    status: 409,
    message: 'this definition runs code, and its workspace is not trusted',
    next: command('workspace trust', placeholder('workspace')),
  },
  agent_reference_forbidden: {
    status: 422,
    message: 'a definition in a workspace references a secret of another owner',
  },
  agent_not_runnable: {
    status: 422,
    message: 'no program on this machine can run this agent',
    next: command('session new', '--agent', 'report'),
  },
})

/** Errors of the plan for starting an agent. */
export const LAUNCH_ERRORS = [
  AgentErrors.agent_not_found,
  AgentErrors.agent_invalid,
  AgentErrors.agent_not_runnable,
  AgentErrors.agent_untrusted,
  AgentErrors.agent_reference_forbidden,
  TrustErrors.trust_unreadable,
] as const
