import * as v from 'valibot'
import { registry } from '../../../kernel/plugin.js'
import type { AgentDefinition } from '../../agents/agents/api.js'
import type { Workspace } from '../../desk/workspaces/api.js'

interface Pair {
  readonly name: string
  readonly value: string
}

/** An MCP server as the protocol wants it: one that the agent starts itself, or one that it reaches over HTTP. */
export type AcpMcpServer =
  | {
      readonly name: string
      readonly command: string
      readonly args: readonly string[]
      readonly env: readonly Pair[]
    }
  | { readonly type: 'http'; readonly name: string; readonly url: string; readonly headers: readonly Pair[] }

/** Contributes MCP servers that the process of a session is handed when it starts. */
export interface SessionMcpServer {
  /**
   * @param allowed names of those that the session may have; undefined: all
   * @param start the session, and how it warns of a server that it does without
   * What it throws fails the start of the session: an agent without a server that it counts on fails later, and says less.
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
