import * as v from 'valibot'
import { registry } from '../../../kernel/plugin.js'
import type { AgentDefinition } from '../../agents/agents/api.js'
import type { Workspace } from '../../desk/workspaces/api.js'

interface Pair {
  readonly name: string
  readonly value: string
}

/** An MCP server in the form of the protocol: started by the agent itself, or reached over HTTP. */
export type AcpMcpServer =
  | {
      readonly name: string
      readonly command: string
      readonly args: readonly string[]
      readonly env: readonly Pair[]
    }
  | { readonly type: 'http'; readonly name: string; readonly url: string; readonly headers: readonly Pair[] }

/** Contributes MCP servers for the process of a session. */
export interface SessionMcpServer {
  /**
   * An error fails the start of the session: an agent without an expected server fails later, with a less clear message.
   * @param allowed names of the servers that the session may use; undefined: all
   * @param start the session, and a callback for warnings about left-out servers
   */
  readonly read: (
    definition: AgentDefinition,
    workspace: Workspace,
    allowed: readonly string[] | undefined,
    start: { readonly sessionId: string; leftOut(text: string): void },
  ) => Promise<readonly AcpMcpServer[]>
}

export const SessionMcpServers = registry<SessionMcpServer>(
  'sessions.mcp-servers@1',
  v.looseObject({ read: v.function() }),
)
