import { messageOf, type PluginKernel } from '../../../../kernel/plugin.js'
import { type AcpMcpServer, type SessionMcpServer, SessionMcpServers } from '../mcp-servers.js'
import { AgentFailure } from './failure.js'

/** The MCP servers for the process of a session. Throws {@link AgentFailure} with the missing part of a server. */
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

/** The name of an MCP server in the form of the protocol. */
export const serverName = (server: unknown): string => String((Object(server) as { name?: unknown }).name)

type Transport = 'stdio' | 'http'

/**
 * Splits MCP servers into reachable ones and, by transport, the names of the others.
 * @param overHttp the agent advertises servers over HTTP
 * @param known the transports that work, where the agent advertises more than it supports
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
