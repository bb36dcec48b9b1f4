import path from 'node:path'
import { describe, throws, tool } from '../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../kernel/kit/collection.js'
import { definePlugin, ok, routeOf, surfaceOf } from '../../../kernel/plugin.js'
import {
  CreateWorkspaceBody,
  ListWorkspacesQuery,
  ListWorkspacesReply,
  PatchWorkspaceBody,
  PlaceWorkspaceReply,
  ResolveWorkspaceBody,
  WorkspaceDetail,
  WorkspaceReply,
} from '../../../schemas/workspaces.js'
import { type Undo, undo } from '../changes/api.js'
import { Checks } from '../daemon/api.js'
import {
  REFERENCE_ERRORS,
  WorkspaceCreated,
  WorkspaceDeleted,
  WorkspaceDetailMembers,
  WorkspaceErrors,
  Workspaces,
  WorkspaceUpdated,
} from './api.js'
import { toWire } from './detail.js'
import { needs } from './needs.js'
import type { WorkspacesService } from './service.js'
import { migrations } from './table.js'

const about = describe('Workspaces')
const route = routeOf<WorkspacesService>(about)
const { contribute } = surfaceOf<WorkspacesService>()
const invalid = [
  WorkspaceErrors.workspace_invalid,
  WorkspaceErrors.workspace_path_relative,
  WorkspaceErrors.workspace_root_invalid,
  WorkspaceErrors.workspace_root_missing,
  WorkspaceErrors.workspace_name_taken,
]

const around = (state: unknown): string | undefined => Object(Object(state).workspaces?.[0]).id
const pathIn = (body: unknown): string => Object(body).path

/** Undo of a registration: deletes the workspace. Only an absolute path can register one. */
const ofRegistration: Extract<Undo, { by: 'custom' }> = {
  by: 'custom',
  reads: ({ body }) => {
    const at = path.isAbsolute(pathIn(body)) ? pathIn(body) : '/'
    return [`/api/workspaces?path=${encodeURIComponent(at)}`]
  },
  after: (reply, { body, before }) => {
    const { workspace, registered } = Object(reply)
    return registered === false || !path.isAbsolute(pathIn(body)) ? before : { workspaces: [workspace] }
  },
  request: ({ after }) => ({ method: 'DELETE', path: `/api/workspaces/${around(after)}` }),
}

/** A path that is resolved is registered if no root is around it. */
const ofResolution: Undo = { ...ofRegistration, event: { name: WorkspaceCreated.name, before: { workspaces: [] } } }

const workspace = collectionOf<WorkspacesService>(about)({
  path: '/api/workspaces',
  key: 'id',
  noun: 'workspace',
  one: [WorkspaceReply, 'workspace'],
  many: [ListWorkspacesReply, 'workspaces'],
  show: ['name', 'id', { of: 'root_dir', header: 'Root' }, { of: 'default_agent', header: 'Agent' }, 'updated_at~ago'],
  fields: [
    'id',
    'name',
    { of: 'root_dir', header: 'Root' },
    { of: 'add_dirs~list', header: 'Further directories' },
    'default_agent',
    { of: 'sandbox_ref', header: 'Sandbox' },
    'created_at~time',
    'updated_at~ago',
  ],
  argument: { type: 'workspace', summary: 'id, name or path' },
  missing: WorkspaceErrors.workspace_not_found,
})

export default definePlugin({
  name: 'workspaces',
  version: '0.1.0',
  requires: needs,
  provides: Workspaces,
  service: () => import('./service.js').then(module => module.WorkspacesService),
}).surface({
  declares: [WorkspaceDetailMembers],
  tables: migrations,
  errors: [WorkspaceErrors],
  events: [WorkspaceCreated, WorkspaceUpdated, WorkspaceDeleted],
  registries: [contribute(Checks, service => service.checks())],
  routes: [
    workspace.list({
      summary: 'List registered workspaces',
      query: ListWorkspacesQuery,
      with: [tool('workspace_list', ['workspace'], { visibility: 'operator' })],
      throws: REFERENCE_ERRORS,
      empty: 'no workspaces; register one: svc workspace add <dir>',
      handle: async (service, { query, actor }) => ({
        workspaces: (await service.around(query.path, actor)).map(toWire),
      }),
    }),
    workspace.create({
      summary: 'Register a folder as a workspace',
      command: 'workspace add',
      cli: {
        args: [{ name: 'root_dir', in: 'body', type: 'path', optional: true, default: '.', summary: 'the directory' }],
      },
      with: [
        undo({ by: 'delete', of: 'workspace.id' }),
        tool('workspace_add', ['workspace'], { visibility: 'operator' }),
      ],
      throws: [...invalid, WorkspaceErrors.workspace_exists],
      body: CreateWorkspaceBody,
      handle: async (service, { body, actor }) => ({ workspace: toWire(await service.create(body, actor)) }),
    }),
    route({
      method: 'POST',
      path: '/api/workspaces/resolve',
      summary: 'Resolve the workspace of a path; register one if there is none',
      // A registration is an event of the audit.
      audited: false,
      with: [undo(ofResolution), throws(...REFERENCE_ERRORS, ...invalid)],
      body: ResolveWorkspaceBody,
      replies: { 200: WorkspaceReply },
      handle: async (service, { body, actor }) => ok({ workspace: toWire(await service.resolve(body.path, actor)) }),
    }),
    route({
      method: 'POST',
      path: '/api/workspaces/place',
      summary: 'Choose the workspace of a command that runs in a folder; register its project if there is none',
      audited: false,
      with: [undo(ofRegistration), throws(WorkspaceErrors.workspace_too_wide, ...REFERENCE_ERRORS, ...invalid)],
      body: ResolveWorkspaceBody,
      replies: { 200: PlaceWorkspaceReply },
      handle: async (service, { body, actor }) => {
        const { workspace, registered } = await service.resolveFolder(body.path, actor)
        return ok({ workspace: toWire(workspace), registered })
      },
    }),
    workspace.get({
      summary: 'Show a workspace and what it sees',
      command: 'workspace info',
      cli: { workspace: 'id', args: [{ name: 'id', type: 'workspace', optional: true, summary: 'id, name or path' }] },
      with: [tool('workspace_info', ['workspace'])],
      throws: REFERENCE_ERRORS,
      origins: ['agent_session'],
      reply: WorkspaceDetail,
      handle: (service, { params, actor }) => service.detail(params.id, actor),
    }),
    workspace.update({
      summary: 'Change the name, additional folders, default agent or sandbox of a workspace',
      command: 'workspace edit',
      with: [undo({ by: 'patch', of: 'workspace' }), tool('workspace_update', ['workspace'])],
      throws: [...invalid, WorkspaceErrors.workspace_reserved],
      body: PatchWorkspaceBody,
      handle: async (service, { params, body, actor }) => ({
        workspace: toWire(await service.update(params.id, body, actor)),
      }),
    }),
    workspace.delete({
      summary: 'Remove a workspace and its records; its files are kept',
      command: 'workspace remove',
      done: 'removed {id}; its files are untouched',
      with: [
        undo({
          by: 'never',
          why: 'the records of the workspace were removed with it; register its folder again: svc workspace add <dir>',
        }),
        tool('workspace_remove', ['workspace'], { visibility: 'operator' }),
      ],
      throws: [WorkspaceErrors.workspace_reserved, WorkspaceErrors.workspace_in_use],
      essential: true,
      handle: (service, { params, actor }) => service.remove(params.id, actor),
    }),
  ],
  hooks: { scope: (service, _, scope) => service.scopeRefusal(scope) },
})
