import { cli, describe, show } from '../../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf } from '../../../kernel/plugin.js'
import { TelemetryReply } from '../../../schemas/telemetry.js'
import type { TelemetryService } from './service.js'

const route = routeOf<TelemetryService>(describe('Telemetry'))

export const routes: readonly Route<TelemetryService>[] = [
  route({
    method: 'GET',
    path: '/metrics',
    summary: 'Get all metrics as OpenMetrics 1.0.0, or as Prometheus text 0.0.4 where Accept prefers text/plain',
    recovery: true,
    headers: { Accept: { required: false } },
    replies: { 200: { as: 'bytes', types: ['application/openmetrics-text', 'text/plain'] } },
    handle: async (service, { headers }) => {
      const { text, type } = await service.exposition(headers.accept)
      return ok(text, { 'content-type': type, 'cache-control': 'no-store' })
    },
  }),
  route({
    method: 'GET',
    path: '/api/telemetry',
    summary: 'Show where metrics are read, and whether traces reach their collector',
    replies: { 200: TelemetryReply },
    with: [
      cli('telemetry status', {
        view: show(TelemetryReply, 'telemetry', [
          { of: 'metrics.path', header: 'Metrics at' },
          { of: 'metrics.count', header: 'Metrics' },
          { of: 'metrics.failed', header: 'Metrics left out' },
          { of: 'traces.state', header: 'Traces' },
          { of: 'traces.endpoint', header: 'Collector' },
          { of: 'traces.sample_ratio', header: 'Sampled' },
          { of: 'traces.sent', header: 'Spans sent' },
          { of: 'traces.waiting', header: 'Spans waiting' },
          { of: 'traces.dropped', header: 'Spans dropped' },
          { of: 'traces.refused', header: 'Spans refused' },
          { of: 'traces.sent_at~ago', header: 'Last sent' },
          { of: 'traces.failing_since~ago', header: 'Failing since' },
          { of: 'traces.error', header: 'Error' },
        ]),
      }),
    ],
    handle: service => ok({ telemetry: service.status() }),
  }),
]
