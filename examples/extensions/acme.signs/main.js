import { describe } from 'svc/kit'
import { definePlugin, ok, routeOf, Settings, surfaceOf } from 'svc/plugin'
import { Configuration } from 'svc/plugins/configuration'
import * as v from 'valibot'

const Sign = v.strictObject({ text: v.pipe(v.string(), v.maxLength(200)), colour: v.optional(v.string()) })

/** Signs by name. What `config.json` says of one name leaves the others as they are. */
const Signs = {
  path: 'plugins.acme.signs.signs',
  section: 'general',
  schema: v.record(v.pipe(v.string(), v.minLength(1)), Sign),
  default: { door: { text: 'Please knock' } },
  apply: 'live',
  merge: 'by-name',
}

class SignsService {
  changes = 0

  constructor(kernel) {
    this.config = kernel.needs.configuration
  }

  /** Each sign with the layer that says it, and what a change has to name. */
  list() {
    const { names } = this.config.explain(Signs.path)
    const signs = Object.entries(this.config.get(Signs)).map(([name, sign]) => ({ name, ...sign, from: names[name] }))
    return { signs, hash: this.config.hashes().desired, changes: this.changes }
  }

  async put(name, { hash, ...value }) {
    const { written, apply } = await this.config.write([{ path: Signs.path, name, value }], { ifHash: hash })
    return { written, apply }
  }
}

const Listed = v.object({ ...Sign.entries, name: v.string(), from: v.string() })
const route = routeOf(describe('Signs'))
const { tap } = surfaceOf()

export default definePlugin({
  name: 'acme.signs',
  version: '1.0.0',
  requires: { configuration: Configuration, settings: Settings },
  service: async () => SignsService,
}).surface({
  settings: [Signs],
  taps: [
    tap(
      Settings,
      settings => settings.of(Signs),
      service => () => service.changes++,
    ),
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/ext/acme.signs/signs',
      summary: 'List signs and where they come from',
      replies: { 200: v.object({ signs: v.array(Listed), hash: v.string(), changes: v.number() }) },
      handle: service => ok(service.list()),
    }),
    route({
      method: 'PUT',
      path: '/api/ext/acme.signs/signs/{name}',
      summary: 'Write a sign to config.json; 409 if it changed meanwhile',
      body: v.strictObject({ ...Sign.entries, hash: v.optional(v.string()) }),
      replies: { 200: v.object({ written: v.boolean(), apply: v.string() }) },
      handle: async (service, { params, body }) => ok(await service.put(params.name, body)),
    }),
  ],
})
