import * as v from 'valibot'
import { parseJson, text } from '../../../kernel/kit/text.js'
import { kind } from '../../../kernel/plugin.js'
import { mapOf } from '../../../schemas/kernel/map-of.js'

/** A tool id: its origin and a name, separated by the reserved `__`. */
const TOOL_ID = /^(?:service__[a-z0-9_]+|(?:ext|mcp)__[a-z0-9]+(?:_[a-z0-9]+)*__[a-z0-9_]+)$/
/** Default maximum bytes of a result. */
const MAX_RESULT_BYTES = 262_144

const names = v.optional(v.pipe(v.array(text(256)), v.maxLength(256)))

/** A JSON Schema as an object or as text; stored as an object. */
const JsonSchema = v.pipe(
  v.union([v.string(), mapOf(v.string(), v.unknown())]),
  v.rawTransform(({ dataset: { value }, addIssue, NEVER }): Record<string, unknown> => {
    if (typeof value !== 'string') return value
    try {
      const parsed = parseJson(value)
      if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed))
        return parsed as Record<string, unknown>
    } catch {
      // Reported below, like a text with another value.
    }
    addIssue({ message: 'a JSON object, or the text of one' })
    return NEVER
  }),
)

const Risk = v.picklist(['read', 'mutating', 'open_world', 'destructive'])

type ToolRisk = v.InferOutput<typeof Risk>

/** The more dangerous of two risks. */
export const riskier = (a: ToolRisk, b: ToolRisk): ToolRisk =>
  Risk.options.indexOf(a) > Risk.options.indexOf(b) ? a : b

const ToolSpec = v.pipe(
  v.object({
    id: v.pipe(
      v.string(),
      v.trim(),
      v.maxLength(256),
      v.regex(TOOL_ID, 'service__<name>, ext__<extension>__<tool> or mcp__<server>__<tool>, in lower case'),
    ),
    description: v.optional(text(16 * 1024, 0), ''),
    display_title: v.optional(text(200)),
    handler: v.optional(text(256)),
    backend: v.object({
      kind: v.picklist(['native', 'extension_host', 'mcp']),
      extension_id: v.optional(text(256)),
      handler: v.optional(text(256)),
      mcp_server: v.optional(text(256)),
      mcp_tool: v.optional(text(256)),
      native_name: v.optional(text(256)),
      requires_capabilities: names,
    }),
    input_schema: v.optional(JsonSchema, { type: 'object' }),
    output_schema: v.optional(JsonSchema),
    risk: v.optional(Risk),
    read_only: v.optional(v.boolean(), false),
    destructive: v.optional(v.boolean(), false),
    open_world: v.optional(v.boolean(), false),
    requires_interaction: v.optional(v.boolean(), false),
    concurrency_safe: v.optional(v.boolean(), false),
    max_result_bytes: v.optional(
      v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(64 * 1024 * 1024)),
      MAX_RESULT_BYTES,
    ),
    toolsets: names,
    tags: names,
    visibility: v.optional(v.picklist(['internal', 'operator', 'session', 'model']), 'model'),
    required_capabilities: names,
    requires_env: names,
    command: v.optional(text(4096)),
  }),
  // Without an explicit risk, the highest of its flags applies, because the risk decides what it may do without
  // approval.
  v.transform(spec => ({ ...spec, risk: spec.risk ?? riskOf(spec) })),
)
export type ToolSpec = v.InferOutput<typeof ToolSpec>

type Flags = { readonly read_only: boolean; readonly destructive: boolean; readonly open_world: boolean }
const riskOf = ({ read_only, destructive, open_world }: Flags): v.InferOutput<typeof Risk> =>
  destructive ? 'destructive' : open_world ? 'open_world' : read_only ? 'read' : 'mutating'

/** Contradictions in a tool's own statements; undefined if there are none. */
export function toolProblem({ id, backend, read_only, destructive, risk }: ToolSpec): string | undefined {
  const from = { service: 'native', ext: 'extension_host', mcp: 'mcp' }[id.split('__')[0] as 'service' | 'ext' | 'mcp']
  if (backend.kind !== from) return `backend.kind: the name ${id} is reserved for ${from} tools`
  if (read_only && (destructive || risk === 'destructive')) return 'destructive: not allowed for a read-only tool'
  if (risk === 'read' && destructive) return 'risk: a destructive tool has risk destructive'
  if (backend.kind === 'mcp' && !(backend.mcp_server && backend.mcp_tool))
    return 'backend: an MCP tool requires mcp_server and mcp_tool'
  return undefined
}

/** Tools that packages and programs provide, as records. */
export const ToolKind = kind<ToolSpec>({
  name: 'tool',
  spec: ToolSpec,
  maxBytes: 256 * 1024,
  check: ({ spec }) => toolProblem(spec),
})
