import { describe, throws } from '../../../../kernel/kit/annotations/index.js'
import { created, noContent, ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import { JsonMap } from '../../../../schemas/kernel/common.js'
import {
  CloseMcpConnectionBody,
  McpMessageBody,
  OpenMcpConnectionBody,
  OpenMcpConnectionReply,
} from '../../../../schemas/mcp/connections.js'
import { AGENT_SESSION } from '../../../access/identity/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { McpErrors } from '../errors.js'
import type { McpService } from '../service.js'

const route = routeOf<McpService>(describe('MCP'))
const origins = [AGENT_SESSION]
/** A message carries the input of a tool and has the same size limit. */
const MOST_BYTES = 4 * 1024 * 1024

/** Routes for `svc mcp serve` and for the program that agents start. */
export const connectionRoutes: readonly Route<McpService>[] = [
  route({
    method: 'POST',
    path: '/api/mcp/connections',
    audited: false,
    summary: 'Open a connection of an MCP client to the daemon',
    body: OpenMcpConnectionBody,
    privileged: true,
    origins,
    replies: { 201: OpenMcpConnectionReply },
    with: [
      throws(
        McpErrors.mcp_nonce_invalid,
        McpErrors.mcp_connections_full,
        McpErrors.mcp_tools_unavailable,
        ...REFERENCE_ERRORS,
      ),
    ],
    handle: async (service, { actor, body }) => created({ connection_id: await service.hosting.open(actor, body) }),
  }),
  route({
    method: 'POST',
    path: '/api/mcp/messages',
    audited: false,
    summary: 'Send a message of an MCP client and wait for its answer',
    body: McpMessageBody,
    bodyLimit: MOST_BYTES,
    privileged: true,
    origins,
    replies: { 200: JsonMap, 204: null },
    with: [throws(McpErrors.mcp_connection_not_found, McpErrors.mcp_message_invalid)],
    handle: async (service, { actor, body, signal }) => {
      const answer = await service.hosting.take(actor, body.connection_id, body.message, signal)
      return answer ? ok({ ...answer }) : noContent()
    },
  }),
  route({
    method: 'POST',
    path: '/api/mcp/connections/close',
    audited: false,
    summary: 'Close a connection of an MCP client',
    body: CloseMcpConnectionBody,
    privileged: true,
    origins,
    replies: { 204: null },
    with: [throws(McpErrors.mcp_connection_not_found)],
    handle: async (service, { actor, body }) => {
      await service.hosting.close(actor, body.connection_id)
      return noContent()
    },
  }),
]
