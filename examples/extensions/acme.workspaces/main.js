import { cli, describe, tool } from 'svc/kit'
import { created, definePlugin, Host, iso, noContent, ok, routeOf, surfaceOf } from 'svc/plugin'
import { Checks, Daemon } from 'svc/plugins/daemon'
import { Events } from 'svc/plugins/events'
import { Ownership } from 'svc/plugins/ownership'
import * as api from 'svc/plugins/workspaces'
import * as wire from 'svc/schemas/workspaces'
import * as v from 'valibot'
import { Registered } from './registered.js'

const route = routeOf(describe('Workspaces'))
const { contribute } = surfaceOf()
/** Tools of agents go with the routes that they call. */
const toolsets = ['workspace']
const all = '/api/workspaces'
const one = '/api/workspaces/{id}'
const reply = workspace => ({ workspace: wireOf(workspace) })

const wireOf = ({ id, name, rootDir, addDirs, defaultAgent, sandboxRef, createdAt, updatedAt }) => ({
  id,
  name,
  root_dir: rootDir,
  add_dirs: [...addDirs],
  default_agent: defaultAgent,
  sandbox_ref: sandboxRef,
  created_at: iso(createdAt),
  updated_at: iso(updatedAt),
})

/**
 * What others rely on is what `svc/plugins/workspaces` says: its token, events, errors and the registry that it declares. The
 * tables of that plugin, in which there may be workspaces already, are inherited. The commands of the package ask these routes by
 * their paths.
 */
export default definePlugin({
  name: 'acme.workspaces',
  version: '1.0.0',
  replaces: 'workspaces',
  requires: { host: Host, daemon: Daemon, events: Events, ownership: Ownership },
  provides: api.Workspaces,
  service: async () => Registered,
}).surface({
  declares: [api.WorkspaceDetailMembers],
  errors: [api.WorkspaceErrors],
  events: [api.WorkspaceCreated, api.WorkspaceUpdated, api.WorkspaceDeleted],
  hooks: { scope: (service, _, scope) => service.scopeRefusal(scope) },
  registries: [
    contribute(Checks, service => [{ id: 'workspaces.roots', category: 'workspaces', run: () => service.rootItems() }]),
  ],
  routes: [
    route({
      method: 'GET',
      path: all,
      summary: 'Registered workspaces',
      query: wire.ListWorkspacesQuery,
      replies: { 200: wire.ListWorkspacesReply },
      with: [tool('workspace_list', toolsets, { visibility: 'operator' })],
      handle: async (service, { query, actor }) =>
        ok({ workspaces: (await service.around(query.path, actor)).map(wireOf) }),
    }),
    route({
      method: 'POST',
      path: all,
      summary: 'Register a folder as a workspace',
      body: wire.CreateWorkspaceBody,
      replies: { 201: wire.WorkspaceReply },
      with: [tool('workspace_add', toolsets, { visibility: 'operator' })],
      handle: async (service, { body, actor }) => created(reply(await service.create(body, actor))),
    }),
    route({
      method: 'POST',
      path: '/api/workspaces/resolve',
      summary: 'Resolve the workspace of a path; register one if there is none',
      body: wire.ResolveWorkspaceBody,
      replies: { 200: wire.WorkspaceReply },
      with: [describe('Workspaces', { errors: [410] })],
      handle: async (service, { body, actor }) => ok(reply(await service.resolve(body.path, actor))),
    }),
    route({
      method: 'POST',
      path: '/api/workspaces/place',
      summary: 'The workspace of a command that runs in a folder; register the folder if there is none',
      body: wire.ResolveWorkspaceBody,
      replies: { 200: wire.PlaceWorkspaceReply },
      with: [describe('Workspaces', { errors: [410] })],
      handle: async (service, { body, actor }) => {
        const { workspace, registered } = await service.place(body.path, actor)
        return ok({ workspace: wireOf(workspace), registered })
      },
    }),
    route({
      method: 'GET',
      path: one,
      summary: 'A workspace and what it sees; by id, name or path',
      replies: { 200: wire.WorkspaceDetail },
      with: [describe('Workspaces', { errors: [410] }), tool('workspace_info', toolsets)],
      handle: async (service, { params, actor }) => {
        const workspace = await service.find(params.id, actor)
        return ok({ ...reply(workspace), ...(await service.detail(workspace)) })
      },
    }),
    route({
      method: 'PATCH',
      path: one,
      summary: 'Change the name, additional folders, default agent or sandbox of a workspace',
      body: wire.PatchWorkspaceBody,
      replies: { 200: wire.WorkspaceReply },
      with: [tool('workspace_update', toolsets)],
      handle: async (service, { params, body, actor }) => ok(reply(await service.change(params.id, body, actor))),
    }),
    route({
      method: 'DELETE',
      path: one,
      summary: 'Remove a workspace and its records; its files are kept',
      essential: true,
      replies: { 204: null },
      with: [tool('workspace_remove', toolsets, { visibility: 'operator' })],
      handle: async (service, { params, actor }) => {
        await service.remove(params.id, actor)
        return noContent()
      },
    }),
    // What this one has more.
    route({
      method: 'GET',
      path: '/api/ext/acme.workspaces/roots',
      summary: 'Roots of all workspaces, ascending',
      replies: { 200: v.object({ roots: v.array(v.object({ root_dir: v.string() })) }) },
      with: [
        cli('workspace roots', {
          view: { rows: 'roots', columns: [{ header: 'Root', path: 'root_dir' }], empty: 'no workspaces' },
        }),
      ],
      handle: service => {
        const roots = service.list().map(workspace => workspace.rootDir)
        return ok({ roots: roots.sort().map(root_dir => ({ root_dir })) })
      },
    }),
  ],
})
