/** Workspaces. */
import * as v from 'valibot'
import { Agent } from './agents.js'
import { Timestamp } from './kernel/common.js'
import { WorkspaceProvider } from './providers.js'
import { Session } from './sessions/session.js'

/** A working folder of agents. */
export const Workspace = v.object({
  id: v.string(),
  name: v.string(),
  add_dirs: v.array(v.string()),
  default_agent: v.optional(v.string()),
  root_dir: v.string(),
  sandbox_ref: v.optional(v.string()),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Workspace = v.InferOutput<typeof Workspace>

/** A skill available in a workspace. */
export const WorkspaceSkill = v.object({ name: v.string(), dir: v.string(), source: v.string() })
export type WorkspaceSkill = v.InferOutput<typeof WorkspaceSkill>

/** GET /api/workspaces/{id}: a workspace with its agents and skills. */
export const WorkspaceDetail = v.object({
  agents: v.optional(v.array(Agent)),
  providers: v.optional(v.array(WorkspaceProvider)),
  sessions: v.optional(v.array(Session)),
  skills: v.optional(v.array(WorkspaceSkill)),
  workspace: Workspace,
})
export type WorkspaceDetail = v.InferOutput<typeof WorkspaceDetail>

/** Query of GET /api/workspaces. */
export const ListWorkspacesQuery = v.strictObject({
  path: v.optional(v.pipe(v.string(), v.description('only the workspace that contains this absolute path'))),
})
export type ListWorkspacesQuery = v.InferOutput<typeof ListWorkspacesQuery>

/** GET /api/workspaces. */
export const ListWorkspacesReply = v.object({ workspaces: v.array(Workspace) })
export type ListWorkspacesReply = v.InferOutput<typeof ListWorkspacesReply>

/** POST, PATCH and resolve. */
export const WorkspaceReply = v.object({ workspace: Workspace })
export type WorkspaceReply = v.InferOutput<typeof WorkspaceReply>

/** POST /api/workspaces. */
export const CreateWorkspaceBody = v.strictObject({
  name: v.optional(v.string()),
  add_dirs: v.optional(v.array(v.string())),
  default_agent: v.optional(v.string()),
  root_dir: v.string(),
  sandbox_ref: v.optional(v.string()),
})
export type CreateWorkspaceBody = v.InferOutput<typeof CreateWorkspaceBody>

/** POST /api/workspaces/resolve: the workspace that contains a path. */
export const ResolveWorkspaceBody = v.strictObject({ path: v.string() })
export type ResolveWorkspaceBody = v.InferOutput<typeof ResolveWorkspaceBody>

/** POST /api/workspaces/place. */
export const PlaceWorkspaceReply = v.object({
  workspace: Workspace,
  registered: v.pipe(v.boolean(), v.description('whether this request registered it')),
})
export type PlaceWorkspaceReply = v.InferOutput<typeof PlaceWorkspaceReply>

/** PATCH /api/workspaces/{id}: the members that change. */
export const PatchWorkspaceBody = v.strictObject({
  name: v.nullish(v.string()),
  add_dirs: v.nullish(v.array(v.string())),
  default_agent: v.nullish(v.string()),
  sandbox_ref: v.nullish(v.string()),
})
export type PatchWorkspaceBody = v.InferOutput<typeof PatchWorkspaceBody>
