import * as v from 'valibot'
import { secretRef } from '../../../kernel/kit/secret-ref.js'
import type { Setting } from '../../../kernel/plugin.js'

const setting = <T>(path: string, schema: v.GenericSchema<unknown, T>, fallback: T, text: string): Setting<T> => ({
  path: `telemetry.${path}`,
  section: 'observability',
  schema: v.pipe(schema, v.description(text)) as v.GenericSchema<unknown, T>,
  default: fallback,
  apply: 'live',
})
const orEmpty = (schema: v.GenericSchema<unknown, string>) => v.union([v.literal(''), schema])

/** An address without user name, password and query, which may be secrets, while settings are visible. */
const isPlain = (text: string) => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return (
    url !== undefined &&
    /^https?:$/.test(url.protocol) &&
    `${url.username}${url.password}${url.search}${url.hash}` === ''
  )
}

export const Endpoint = setting(
  'otlp_endpoint',
  orEmpty(
    v.pipe(
      v.string(),
      v.maxLength(2048),
      v.check(isPlain, 'Expected http://host:4318 or https://host, without a password or query'),
    ),
  ),
  '',
  'Collector that receives traces by OTLP over HTTP, `http://localhost:4318`; empty: no tracing',
)
export const Headers = setting(
  'otlp_headers',
  orEmpty(secretRef({ env: '', vault: 'telemetry/' })),
  '',
  'Reference to the headers for the collector, comma-separated `name=value`: `vault:telemetry/headers`',
)
export const SampleRatio = setting(
  'trace_sample_ratio',
  v.pipe(v.number(), v.minValue(0), v.maxValue(1)),
  1,
  'Fraction of traces started by the daemon that is recorded; for a trace started by a caller, the caller decides',
)
export const ServiceName = setting(
  'service_name',
  v.pipe(v.string(), v.minLength(1), v.maxLength(128)),
  'svc',
  'Name of this daemon in traces, as `service.name`',
)
/** Settings whose change restarts tracing; headers are read for each request. */
export const restarting: readonly Setting<unknown>[] = [Endpoint, SampleRatio, ServiceName] as never
export const settings: readonly Setting<unknown>[] = [...restarting, Headers as never]
