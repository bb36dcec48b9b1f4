import { describe, tool } from 'svc/kit'
import { defineErrors, definePlugin, kind, ok, routeOf, surfaceOf } from 'svc/plugin'
import { Workspaces } from 'svc/plugins/workspaces'
import * as v from 'valibot'

/** A record of this kind keeps the workspace that it names. */
const Keep = kind({
  name: 'acme.keep',
  spec: v.object({ workspace: v.pipe(v.string(), v.minLength(1)), why: v.optional(v.string(), '') }),
  maxBytes: 4096,
})
const Errors = defineErrors({
  acme_workspace_kept: { status: 409, message: 'the workspace is kept', next: 'svc resource list acme.keep' },
})

class Keeper {
  kept = new Map()

  project({ records, removed }) {
    for (const { id, spec } of records) this.kept.set(id, spec)
    for (const id of removed) this.kept.delete(id)
  }

  refusal({ name }) {
    const found = [...this.kept.values()].find(({ workspace }) => workspace === name)
    return found && Errors.acme_workspace_kept(`${name} is kept: ${found.why || 'it does not say why'}`)
  }

  list = () => [...this.kept.values()].sort((a, b) => (a.workspace < b.workspace ? -1 : 1))
}

const route = routeOf(describe('Keep'))
const { reconciler, tap } = surfaceOf()
const Kept = v.object({ kept: v.array(v.object({ workspace: v.string(), why: v.string() })) })

export default definePlugin({
  name: 'acme.keep',
  version: '1.0.0',
  requires: { workspaces: Workspaces },
  service: async () => Keeper,
}).surface({
  kinds: [Keep],
  errors: [Errors],
  reconcilers: [reconciler({ kind: Keep, run: (service, batch) => service.project(batch) })],
  taps: [
    tap(
      Workspaces,
      workspaces => workspaces.deleting,
      service => (_, workspace) => service.refusal(workspace),
    ),
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/ext/acme.keep/kept',
      summary: 'List kept workspaces by name',
      replies: { 200: Kept },
      // Lent to agents as the tool ext__acme_keep__kept.
      with: [tool('kept', [], { description: 'List kept workspaces' })],
      handle: service => ok({ kept: service.list() }),
    }),
  ],
  commands: [{ path: 'acme keep list', summary: 'List kept workspaces', load: () => import('./list.js') }],
})
