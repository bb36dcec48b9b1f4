import { describe } from '../../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf } from '../../../kernel/plugin.js'
import type { TelemetryService } from './service.js'

const route = routeOf<TelemetryService>(describe('Telemetry'))

export const routes: readonly Route<TelemetryService>[] = [
  route({
    method: 'GET',
    path: '/metrics',
    summary:
      'Get all metrics as OpenMetrics 1.0.0, or as Prometheus text 0.0.4 where the header Accept prefers text/plain',
    recovery: true,
    headers: { Accept: { required: false } },
    replies: { 200: { as: 'bytes', types: ['application/openmetrics-text', 'text/plain'] } },
    handle: async (self, { headers }) => {
      const { text, type } = await self.exposition(headers.accept)
      return ok(text, { 'content-type': type, 'cache-control': 'no-store' })
    },
  }),
]
