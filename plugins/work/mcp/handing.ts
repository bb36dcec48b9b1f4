import { Fault, type MaybeToken, messageOf, type PluginKernel } from '../../../kernel/plugin.js'
import type { AgentDefinition } from '../../agents/agents/api.js'
import { type ExtensionsApi, ownerOf } from '../../delivery/extensions/api.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { AcpMcpServer } from '../sessions/api.js'
import { ownSandbox } from './client/confining.js'
import { valuesOf } from './client/reach.js'
import { McpErrors } from './errors.js'
import type { Sources } from './sources/sources.js'

/**
 * The servers that the process of a session is handed, with their secrets, to start or reach them itself. Those that need a
 * login, or a sandbox of their own, are left to the daemon, which calls their tools on the session's behalf.
 * @throws Fault naming a source that cannot be read, or a secret that is missing
 */
export async function serversForSession(
  kernel: Pick<PluginKernel<{ extensions: MaybeToken<ExtensionsApi> }>, 'collect' | 'log' | 'name' | 'needs'>,
  sources: Sources,
  definition: AgentDefinition,
  workspace: Workspace,
  allowed: readonly string[] | undefined,
): Promise<AcpMcpServer[]> {
  const { servers, problems } = await sources.read({ workspace, definition })
  const problem = problems.find(({ isForeign }) => !isForeign)
  if (problem)
    throw problem.error instanceof Fault ? problem.error : McpErrors.mcp_file_invalid(messageOf(problem.error))
  const handed: AcpMcpServer[] = []
  for (const server of servers) {
    const { name, declaration } = server
    const owner = ownerOf(kernel.needs.extensions.current, server.source.extension)
    if ((allowed && !allowed.includes(name)) || ownSandbox(server, owner) !== undefined) continue
    const { command, args = [], env, secret_env, url, headers, secret_headers, auth } = declaration
    const pairs = async (...of: [typeof env, typeof secret_env]) =>
      Object.entries(await valuesOf(kernel, server, ...of)).map(([key, value]) => ({ name: key, value }))
    try {
      if (command !== undefined) handed.push({ name, command, args, env: await pairs(env, secret_env) })
      else if (url !== undefined && !auth)
        handed.push({ type: 'http', name, url, headers: await pairs(headers, secret_headers) })
    } catch (error) {
      // A file of another program names variables that nobody stored here; it costs its own server alone.
      if (server.source.kind !== 'workspace-foreign') throw error
      kernel.log.warn('a server of .mcp.json is left out of a session', { server: name, why: messageOf(error) })
    }
  }
  return handed
}
