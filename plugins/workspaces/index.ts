import { cli, describe, tool } from '../../kernel/kit/annotations/index.js'
import { created, definePlugin, Host, noContent, ok, routeOf, surfaceOf } from '../../kernel/plugin.js'
import {
  CreateWorkspaceBody,
  ListWorkspacesQuery,
  ListWorkspacesReply,
  PatchWorkspaceBody,
  PlaceWorkspaceReply,
  ResolveWorkspaceBody,
  WorkspaceDetail,
  WorkspaceReply,
} from '../../schemas/workspaces.js'
import { Checks, Daemon } from '../daemon/api.js'
import { Events } from '../events/api.js'
import {
  WorkspaceCreated,
  WorkspaceDeleted,
  WorkspaceDetailMembers,
  WorkspaceErrors,
  Workspaces,
  WorkspaceUpdated,
} from './api.js'
import { toWire } from './detail.js'
import type { WorkspacesService } from './service.js'
import { migrations } from './table.js'

const route = routeOf<WorkspacesService>(describe('Workspaces'))
const { contribute } = surfaceOf<WorkspacesService>()

const fields = [
  { header: 'ID', path: 'id' },
  { header: 'Name', path: 'name' },
  { header: 'Root', path: 'root_dir' },
  { header: 'Further directories', path: 'add_dirs', as: 'list' },
  { header: 'Default agent', path: 'default_agent' },
  { header: 'Sandbox', path: 'sandbox_ref' },
  { header: 'Created', path: 'created_at', as: 'time' },
  { header: 'Updated', path: 'updated_at', as: 'ago' },
] as const

export default definePlugin({
  name: 'workspaces',
  version: '0.1.0',
  requires: { host: Host, daemon: Daemon, events: Events },
  provides: Workspaces,
  service: () => import('./service.js').then(module => module.WorkspacesService),
}).surface({
  declares: [WorkspaceDetailMembers],
  tables: migrations,
  errors: [WorkspaceErrors],
  events: [WorkspaceCreated, WorkspaceUpdated, WorkspaceDeleted],
  registries: [contribute(Checks, self => self.checks())],
  routes: [
    route({
      method: 'GET',
      path: '/api/workspaces',
      summary: 'List registered workspaces',
      query: ListWorkspacesQuery,
      replies: { 200: ListWorkspacesReply },
      with: [
        describe('Workspaces', { errors: [410] }),
        cli('workspace list', {
          view: {
            rows: 'workspaces',
            columns: [
              { header: 'Name', path: 'name' },
              { header: 'ID', path: 'id' },
              { header: 'Root', path: 'root_dir' },
              { header: 'Agent', path: 'default_agent' },
              { header: 'Updated', path: 'updated_at', as: 'ago' },
            ],
            empty: 'no workspaces; register one: svc workspace add <dir>',
          },
        }),
        tool('workspace_list', ['workspace'], { visibility: 'operator' }),
      ],
      handle: async (self, { query, actor }) => ok({ workspaces: (await self.around(query.path, actor)).map(toWire) }),
    }),
    route({
      method: 'POST',
      path: '/api/workspaces',
      summary: 'Register a folder as a workspace',
      body: CreateWorkspaceBody,
      replies: { 201: WorkspaceReply },
      with: [
        cli('workspace add', {
          args: [
            { name: 'root_dir', in: 'body', type: 'path', optional: true, default: '.', summary: 'the directory' },
          ],
          view: { item: 'workspace', fields },
        }),
        tool('workspace_add', ['workspace'], { visibility: 'operator' }),
      ],
      handle: async (self, { body, actor }) => created({ workspace: toWire(await self.create(body, actor)) }),
    }),
    route({
      method: 'POST',
      path: '/api/workspaces/resolve',
      with: [describe('Workspaces', { errors: [410] })],
      summary: 'Resolve the workspace of a path; register one if there is none',
      body: ResolveWorkspaceBody,
      replies: { 200: WorkspaceReply },
      handle: async (self, { body, actor }) => ok({ workspace: toWire(await self.resolve(body.path, actor)) }),
    }),
    route({
      method: 'POST',
      path: '/api/workspaces/place',
      with: [describe('Workspaces', { errors: [410] })],
      summary: 'Choose the workspace of a command that runs in a folder; register its project if there is none',
      body: ResolveWorkspaceBody,
      replies: { 200: PlaceWorkspaceReply },
      handle: async (self, { body, actor }) => {
        const { workspace, registered } = await self.place(body.path, actor)
        return ok({ workspace: toWire(workspace), registered })
      },
    }),
    route({
      method: 'GET',
      path: '/api/workspaces/{id}',
      origins: ['agent_session'],
      summary: 'Show a workspace and what it sees',
      replies: { 200: WorkspaceDetail },
      with: [
        describe('Workspaces', { errors: [410] }),
        cli('workspace info', {
          workspace: 'id',
          args: [{ name: 'id', type: 'workspace', optional: true, summary: 'id, name or path' }],
          view: { item: 'workspace', fields },
        }),
        tool('workspace_info', ['workspace']),
      ],
      handle: async (self, { params, actor }) => ok(await self.detail(params.id, actor)),
    }),
    route({
      method: 'PATCH',
      path: '/api/workspaces/{id}',
      summary: 'Change the name, additional folders, default agent or sandbox of a workspace',
      body: PatchWorkspaceBody,
      replies: { 200: WorkspaceReply },
      with: [
        cli('workspace edit', {
          args: [{ name: 'id', type: 'workspace', summary: 'id, name or path' }],
          view: { item: 'workspace', fields },
        }),
        tool('workspace_update', ['workspace']),
      ],
      handle: async (self, { params, body, actor }) =>
        ok({ workspace: toWire(await self.update(params.id, body, actor)) }),
    }),
    route({
      method: 'DELETE',
      path: '/api/workspaces/{id}',
      summary: 'Remove a workspace and its records; its files are kept',
      essential: true,
      replies: { 204: null },
      with: [
        cli('workspace remove', {
          args: [{ name: 'id', type: 'workspace', summary: 'id, name or path' }],
          done: 'removed {id}; its files are untouched',
        }),
        tool('workspace_remove', ['workspace'], { visibility: 'operator' }),
      ],
      handle: async (self, { params, actor }) => {
        await self.remove(params.id, actor)
        return noContent()
      },
    }),
  ],
  hooks: { scope: (self, _, scope) => self.scopeRefusal(scope) },
})
