/** The daemon as an MCP server: one request per protocol message. */
import * as v from 'valibot'
import { JsonMap } from '../kernel/common.js'

const Risk = v.picklist(['read', 'mutating', 'open_world', 'destructive'])

/** POST /api/mcp/connections. */
export const OpenMcpConnectionBody = v.strictObject({
  /** Nonce of the session whose agent connects; other callers need none. */
  nonce: v.optional(v.pipe(v.string(), v.maxLength(128))),
  /** Risks of the tools to list; default: read-only tools. Ignored for agents, whose session decides. */
  risks: v.optional(v.pipe(v.array(Risk), v.maxLength(4))),
  workspace_id: v.optional(v.pipe(v.string(), v.maxLength(4096))),
})
export type OpenMcpConnectionBody = v.InferOutput<typeof OpenMcpConnectionBody>

export const OpenMcpConnectionReply = v.object({ connection_id: v.string() })

const connection_id = v.pipe(v.string(), v.maxLength(128))

/** POST /api/mcp/messages: one JSON-RPC message; so is the reply. */
export const McpMessageBody = v.strictObject({ connection_id, message: JsonMap })

/** POST /api/mcp/connections/close. */
export const CloseMcpConnectionBody = v.strictObject({ connection_id })
