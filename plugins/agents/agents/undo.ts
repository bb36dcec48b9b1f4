import { PutAgentBody } from '../../../schemas/agents.js'
import { type ChangeRequest, type ChangeSeen, pick, type Undo } from '../../desk/changes/api.js'

/** Members of a definition that requests can write. */
const WRITTEN = Object.keys(PutAgentBody.entries.agent.entries)

type ReadRequest = Pick<ChangeSeen, 'path' | 'query' | 'body'>

/** The writable members; an empty text counts as unset. */
const writtenIn = (agent: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(pick(agent, WRITTEN)).filter(([, value]) => value !== ''))

const agentOf = (state: unknown): Readonly<Record<string, unknown>> | undefined => Object(state).agent
/** Path of an agent in the list of agents. */
const within = (list: string, name: unknown) => `${list}/${encodeURIComponent(String(name ?? ''))}`
const listOf = (path: string) => path.slice(0, path.lastIndexOf('/'))

/** The workspace in a request's body or query. */
function workspaceOf({ query, body }: ReadRequest): string | undefined {
  return Object(body).workspace ?? new URLSearchParams(query).get('workspace') ?? undefined
}

function inWorkspace(request: ReadRequest): string {
  const workspace = workspaceOf(request)
  return workspace === undefined ? '' : `?workspace=${encodeURIComponent(workspace)}`
}

/** Reason why a request cannot restore a definition: members that only its file can have. */
const lost = (agent: Readonly<Record<string, unknown>>): string | undefined =>
  (agent.mcp_servers as readonly unknown[] | undefined)?.length
    ? 'the definition has MCP servers, which can be set only in its file'
    : undefined

const reads = (request: ReadRequest) => [`${request.path}${inWorkspace(request)}`]

/** Undo of an update: restores the fields. */
export const ofUpdate: Undo = {
  by: 'custom',
  of: 'agent',
  compares: WRITTEN,
  reads,
  request: (change): ChangeRequest | string => {
    const [before, after] = [agentOf(change.before), agentOf(change.after)]
    if (!before) return 'the agent was not there'
    const workspace = workspaceOf(change)
    return {
      method: 'PUT',
      path: change.path,
      body: {
        agent: writtenIn(before),
        expected_digest: after?.definition_digest,
        ...(workspace !== undefined && { workspace }),
      },
    }
  },
}

/** Undo of a creation: deletes the definition. */
export const ofCreation: Undo = {
  by: 'custom',
  reads: request => [`${within(request.path, Object(request.body).agent?.name)}${inWorkspace(request)}`],
  request: change => {
    if (agentOf(change.before))
      return 'it hides an agent of the same name, which would take effect again; delete it: svc agent delete'
    return { method: 'DELETE', path: `${within(change.path, Object(change.body).agent?.name)}${inWorkspace(change)}` }
  },
}

/** Undo of a deletion: creates the definition again. */
export const ofRemoval: Undo = {
  by: 'custom',
  of: 'agent',
  compares: WRITTEN,
  reads,
  request: (change): ChangeRequest | string => {
    const before = agentOf(change.before)
    if (!before) return 'the agent was not there'
    const missing = lost(before)
    if (missing !== undefined) return missing
    const workspace = before.workspace_id as string | undefined
    const target = workspace === undefined ? { scope: 'global' } : { scope: 'workspace', workspace }
    return { method: 'POST', path: listOf(change.path), body: { agent: writtenIn(before), ...target } }
  },
}

/** Undo of a copy: deletes it. */
export const ofCopy: Undo = {
  by: 'custom',
  reads: request => [`${within(listOf(listOf(request.path)), Object(request.body).name)}${inWorkspace(request)}`],
  request: change => {
    if (agentOf(change.before))
      return 'it hides an agent of the same name, which would take effect again; delete it: svc agent delete'
    return {
      method: 'DELETE',
      path: `${within(listOf(listOf(change.path)), Object(change.body).name)}${inWorkspace(change)}`,
    }
  },
}
