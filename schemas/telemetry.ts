/** Metrics and traces. */
import * as v from 'valibot'
import { Integer, Timestamp } from './kernel/common.js'

/** GET /api/telemetry. */
export const TelemetryReply = v.object({
  telemetry: v.object({
    metrics: v.object({
      path: v.pipe(v.string(), v.description('where the metrics are read')),
      count: v.pipe(Integer, v.description('metrics that are shown, those of extensions included')),
      failed: v.pipe(Integer, v.description('omitted metrics since the daemon started')),
    }),
    traces: v.object({
      state: v.pipe(
        v.picklist(['off', 'ok', 'failing', 'broken']),
        v.description(
          'off: no collector is configured; failing: the collector does not accept spans; broken: tracing did not start',
        ),
      ),
      endpoint: v.optional(v.string()),
      sample_ratio: v.number(),
      sent: v.pipe(Integer, v.description('spans accepted by the collector')),
      waiting: v.pipe(Integer, v.description('spans waiting to be sent')),
      dropped: v.pipe(Integer, v.description('spans dropped because the buffer was full')),
      refused: v.pipe(Integer, v.description('spans rejected by the collector')),
      error: v.optional(v.string()),
      failing_since: v.optional(Timestamp),
      sent_at: v.optional(Timestamp),
    }),
  }),
})
export type TelemetryReply = v.InferOutput<typeof TelemetryReply>
