import { describe } from '../../../kernel/kit/annotations/index.js'
import { definePlugin, Host, ok, routeOf } from '../../../kernel/plugin.js'
import { OpenApiReply } from '../../../schemas/daemon.js'
import { OpenApi } from './api.js'
import type { OpenApiService } from './service.js'

const route = routeOf<OpenApiService>(describe('Daemon status and control'))

/** The API document, and the refusal of plugins whose routes it cannot describe. */
export default definePlugin({
  name: 'openapi',
  version: '0.1.0',
  requires: { host: Host },
  provides: OpenApi,
  service: () => import('./service.js').then(module => module.OpenApiService),
}).surface({
  hooks: { check: (service, plugin) => service.check(plugin) },
  routes: [
    route({
      method: 'GET',
      path: '/api/openapi.json',
      origins: ['agent_session'],
      summary: 'Get the OpenAPI document of all current routes',
      replies: { 200: OpenApiReply },
      handle: async service => ok(await service.document()),
    }),
  ],
})
