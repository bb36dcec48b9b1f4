import type { MetricDeclaration } from '../../plugins/reach/telemetry/api.js'
import { declared } from '../../plugins/reach/telemetry/metrics/declared.js'
import { code, page, table } from './markdown.js'

/** The declared metrics, under their exposed names. */
export function metricsPage(): string {
  const all: readonly MetricDeclaration[] = Object.values(declared)
  const rows = all.map(({ name, type, help, labels = [], bounds = [] }) => [
    code(type === 'counter' ? `${name}_total` : type === 'info' ? `${name}_info` : name),
    bounds.length > 0 ? `${type}: ${bounds.join(', ')}` : type,
    labels.map(code).join(', '),
    help,
  ])
  return page(
    'Metrics',
    `What ${code('GET /metrics')} shows; [telemetry.md](../telemetry.md) says how to read it. A histogram is shown with the upper bounds of its
buckets, and has ${code('_bucket')}, ${code('_count')} and ${code('_sum')}.`,
    table(['metric', 'type', 'labels', 'meaning'], rows),
  )
}
