import { PutAgentBody } from '../../../schemas/agents.js'
import { type ChangeRequest, type ChangeSeen, pick, type Undo } from '../../desk/changes/api.js'

/** Members of a definition that requests can write. */
const WRITTEN = Object.keys(PutAgentBody.entries.agent.entries)

type Asked = Pick<ChangeSeen, 'path' | 'query' | 'body'>

/** The writable members; an empty text counts as unset. */
const writtenIn = (agent: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(pick(agent, WRITTEN)).filter(([, value]) => value !== ''))

const agentOf = (state: unknown): Readonly<Record<string, unknown>> | undefined => Object(state).agent
/** Path of an agent in the list of agents. */
const within = (list: string, name: unknown) => `${list}/${encodeURIComponent(String(name ?? ''))}`
const listOf = (path: string) => path.slice(0, path.lastIndexOf('/'))

/** The workspace in a request's body or query. */
function workspaceOf({ query, body }: Asked): string | undefined {
  return Object(body).workspace ?? new URLSearchParams(query).get('workspace') ?? undefined
}

function inWorkspace(asked: Asked): string {
  const workspace = workspaceOf(asked)
  return workspace === undefined ? '' : `?workspace=${encodeURIComponent(workspace)}`
}

/** Reason why a request cannot restore a definition: members that only its file can have. */
const lost = (agent: Readonly<Record<string, unknown>>): string | undefined =>
  (agent.mcp_servers as readonly unknown[] | undefined)?.length
    ? 'the definition has MCP servers, which only its file can name'
    : undefined

const reads = (asked: Asked) => [`${asked.path}${inWorkspace(asked)}`]

/** Undo of an update: restores the fields. */
export const ofUpdate: Undo = {
  by: 'custom',
  of: 'agent',
  compares: WRITTEN,
  reads,
  request: (seen): ChangeRequest | string => {
    const [before, after] = [agentOf(seen.before), agentOf(seen.after)]
    if (!before) return 'the agent was not there'
    const workspace = workspaceOf(seen)
    return {
      method: 'PUT',
      path: seen.path,
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
  reads: asked => [`${within(asked.path, Object(asked.body).agent?.name)}${inWorkspace(asked)}`],
  request: seen => {
    if (agentOf(seen.before))
      return 'it hides an agent of the same name, which would be in force again; delete it: svc agent delete'
    return { method: 'DELETE', path: `${within(seen.path, Object(seen.body).agent?.name)}${inWorkspace(seen)}` }
  },
}

/** Undo of a deletion: creates the definition again. */
export const ofRemoval: Undo = {
  by: 'custom',
  of: 'agent',
  compares: WRITTEN,
  reads,
  request: (seen): ChangeRequest | string => {
    const before = agentOf(seen.before)
    if (!before) return 'the agent was not there'
    const missing = lost(before)
    if (missing !== undefined) return missing
    const workspace = before.workspace_id as string | undefined
    const place = workspace === undefined ? { scope: 'global' } : { scope: 'workspace', workspace }
    return { method: 'POST', path: listOf(seen.path), body: { agent: writtenIn(before), ...place } }
  },
}

/** Undo of a copy: deletes it. */
export const ofCopy: Undo = {
  by: 'custom',
  reads: asked => [`${within(listOf(listOf(asked.path)), Object(asked.body).name)}${inWorkspace(asked)}`],
  request: seen => {
    if (agentOf(seen.before))
      return 'it hides an agent of the same name, which would be in force again; delete it: svc agent delete'
    return {
      method: 'DELETE',
      path: `${within(listOf(listOf(seen.path)), Object(seen.body).name)}${inWorkspace(seen)}`,
    }
  },
}
