import { shown } from '../../../kernel/kit/text.js'
import { Fault, messageOf } from '../../../kernel/plugin.js'
import type { AgentDefinition } from '../../agents/agents/api.js'
import { ownerOf } from '../../delivery/extensions/api.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { AcpMcpServer, SessionMcpServer } from '../sessions/api.js'
import { ownSandbox } from './client/confining.js'
import { valuesOf } from './client/reach.js'
import { McpErrors } from './errors.js'
import type { K } from './needs.js'
import type { Server } from './sources/declaration.js'
import type { Sources } from './sources/sources.js'

/** Dependencies of passing servers to a session. */
export interface Handing {
  readonly sources: Sources
  /** Starts or connects to a server, and lists its tools. */
  readonly begin: (server: Server) => Promise<void>
  readonly start: Parameters<SessionMcpServer['read']>[3]
}

/**
 * The servers, with secrets, that a session's process starts or connects to itself. Servers with a login or a sandbox
 * of their own stay with the daemon, which calls their tools for the session. An unusable server is left out with a
 * warning, unless it is required.
 * @throws Fault naming a source that cannot be read, or a required server and why it cannot start
 */
export async function serversForSession(
  kernel: K,
  { sources, begin, start }: Handing,
  definition: AgentDefinition,
  workspace: Workspace,
  allowed: readonly string[] | undefined,
): Promise<AcpMcpServer[]> {
  const { servers, problems } = await sources.read({ workspace, definition })
  const isAllowed = (name: string | undefined) => name === undefined || !allowed || allowed.includes(name)
  const leftOut = (text: string) => {
    kernel.log.warn('a session starts without an MCP server', { session: start.sessionId, why: text })
    start.leftOut(text)
  }
  for (const { error, server, isMinor } of problems) {
    if (!isAllowed(server)) continue
    if (!isMinor) throw error instanceof Fault ? error : McpErrors.mcp_file_invalid(messageOf(error))
    leftOut(messageOf(error))
  }
  const handed: AcpMcpServer[] = []
  for (const server of servers.filter(({ name }) => isAllowed(name))) {
    const { required } = server.declaration
    try {
      if (required) await begin(server)
      const owner = ownerOf(kernel.needs.extensions.current, server.source.extension)
      const one = ownSandbox(server, owner) === undefined ? await handedAs(kernel, server) : undefined
      if (one) handed.push(one)
    } catch (error) {
      if (required) throw McpErrors.mcp_server_required(`${shown(server.name)}: ${messageOf(error)}`, { cause: error })
      leftOut(`the session starts without the MCP server ${shown(server.name)}: ${messageOf(error)}`)
    }
  }
  return handed
}

/** Undefined for a server that only the daemon connects to. @throws Fault naming a missing secret */
async function handedAs(kernel: K, server: Server): Promise<AcpMcpServer | undefined> {
  const { name, declaration } = server
  const { command, args = [], env, secret_env, url, headers, secret_headers, auth } = declaration
  const pairs = async (...of: [typeof env, typeof secret_env]) =>
    Object.entries(await valuesOf(kernel, server, ...of)).map(([key, value]) => ({ name: key, value }))
  if (command !== undefined) return { name, command, args, env: await pairs(env, secret_env) }
  if (url === undefined || auth) return undefined
  return { type: 'http', name, url, headers: await pairs(headers, secret_headers) }
}
