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

type Transport = 'stdio' | 'http'

/**
 * The servers that an agent can be handed, and the names of those that it has no way to reach, by their transport.
 * @param overHttp it says that it reaches servers over HTTP
 * @param known how it reaches servers, where that is less than the protocol and its own word say
 */
export function reachable(
  servers: readonly unknown[],
  overHttp: boolean,
  known: readonly string[] = ['stdio', 'http'],
) {
  const leftOut = new Map<Transport, string[]>()
  const handed = servers.filter(server => {
    const transport = (Object(server) as { type?: unknown }).type === 'http' ? 'http' : 'stdio'
    if (known.includes(transport) && (transport === 'stdio' || overHttp)) return true
    leftOut.set(transport, [...(leftOut.get(transport) ?? []), serverName(server)])
    return false
  })
  return { handed, leftOut }
}
