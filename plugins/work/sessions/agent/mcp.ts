import { messageOf, type PluginKernel } from '../../../../kernel/plugin.js'
import { type AcpMcpServer, type SessionMcpServer, SessionMcpServers } from '../mcp-servers.js'
import { AgentFailure } from './failure.js'

/** The MCP servers that the process of a session is handed. Throws {@link AgentFailure} with what one of them lacks. */
export async function serversFor(
  { collect }: Pick<PluginKernel, 'collect'>,
  ...about: Parameters<SessionMcpServer['read']>
): Promise<AcpMcpServer[]> {
  const read = collect(SessionMcpServers).map(({ entry }) => entry.read(...about))
  const servers = await Promise.all(read).catch(error => {
    throw new AgentFailure('startup_failure', messageOf(error), error)
  })
  return servers.flat()
}

/** The name of a server that an agent is handed. */
export const serverName = (server: unknown): string => String((Object(server) as { name?: unknown }).name)

/** The servers that an agent can be handed, and the names of those over HTTP, where it has no way to reach them. */
export function reachable(servers: readonly unknown[], overHttp: boolean) {
  const leftOut: string[] = []
  const handed = servers.filter(server => {
    const { type } = Object(server) as { type?: unknown }
    if (overHttp || type !== 'http') return true
    leftOut.push(serverName(server))
    return false
  })
  return { handed, leftOut }
}
