import * as v from 'valibot'
import { settingsSection } from '../../../kernel/kit/settings.js'
import type { Setting } from '../../../kernel/plugin.js'
import { Duration } from '../../../schemas/duration.js'
import { mapOf } from '../../../schemas/kernel/map-of.js'

const setting = settingsSection({ path: 'tools', section: 'general', apply: 'live' })
const count = (min: number, max: number) => v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max))
const duration = (text: string) => v.parse(Duration, text)

const Toolsets = mapOf(
  v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_-]{0,63}$/, 'lower-case letters, digits, _ and -')),
  v.object({
    tools: v.optional(v.pipe(v.array(v.pipe(v.string(), v.maxLength(256))), v.maxLength(1000)), []),
    toolsets: v.optional(v.pipe(v.array(v.pipe(v.string(), v.maxLength(64))), v.maxLength(100)), []),
  }),
)

/** Settings of tools; durations in milliseconds, sizes in bytes. */
export const ToolSettings = {
  enabled: setting('enabled', v.boolean(), true),
  /** Bytes of a result returned to a caller. */
  maxResultBytes: setting('max_result_bytes', count(1024, 16 * 1024 * 1024), 262_144),
  /** Default for tools of extensions and MCP servers that a session's agent does not name. */
  externalDefault: setting('policy.external_default', v.picklist(['disabled', 'ask', 'enabled']), 'disabled'),
  /** Timeout of an approval, and lifetime of a token. */
  approvalTimeout: setting('policy.approval_timeout', Duration, duration('120s')),
  /** Timeout of a backend's call. */
  callTimeout: setting('policy.call_timeout', Duration, duration('120s')),
  artifactCount: setting('artifacts.max_count', count(1, 100_000), 200),
  artifactBytes: setting('artifacts.max_bytes', count(1024 * 1024, 2 ** 40), 1024 ** 3),
  artifactAge: setting('artifacts.max_age', Duration, duration('720h')),
  /** The operator's toolsets, by id. */
  toolsets: {
    ...setting('toolsets', Toolsets, {}),
    merge: 'by-name',
  } as Setting<v.InferOutput<typeof Toolsets>>,
}
