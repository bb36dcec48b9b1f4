import { ok, routeOf } from 'svc/plugin'
import { workspaces } from 'svc/plugins'
import * as v from 'valibot'

const route = routeOf()

/** What this one has more than the plugin whose place it takes. */
const more = {
  routes: [
    route({
      method: 'GET',
      path: '/api/ext/acme.workspaces/roots',
      area: 'Workspaces',
      summary: 'Roots of all workspaces, ascending',
      replies: { 200: v.object({ roots: v.array(v.object({ root_dir: v.string() })) }) },
      cli: {
        path: 'workspace roots',
        view: { rows: 'roots', columns: [{ header: 'Root', path: 'root_dir' }], empty: 'no workspaces' },
      },
      handle: self => {
        const roots = self.list().map(workspace => ({ root_dir: workspace.rootDir }))
        return ok({ roots: roots.sort((a, b) => (a.root_dir < b.root_dir ? -1 : 1)) })
      },
    }),
  ],
}

/** A plugin is a plain object: this one is another with some members changed, and brings that one's tables along. */
export default {
  ...workspaces,
  name: 'acme.workspaces',
  version: '1.0.0',
  replaces: 'workspaces',
  surface: { ...workspaces.surface, routes: [...workspaces.surface.routes, ...more.routes] },
  async apply(kernel) {
    const service = await workspaces.apply(kernel)
    kernel.register(more, service)
    return service
  },
}
