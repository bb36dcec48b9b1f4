import { resolveSecret } from '../../../kernel/kit/secret-ref.js'
import { messageOf, type PluginKernel } from '../../../kernel/plugin.js'
import type { AgentDefinition } from '../../agents/api.js'
import { AgentFailure } from './failure.js'

/** A server as the protocol wants it: one that the agent starts itself. */
export interface AcpMcpServer {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: readonly { readonly name: string; readonly value: string }[]
}

/**
 * The MCP servers of a definition that the agent starts itself; those over HTTP are left to a plugin that taps `prepare`.
 * Throws {@link AgentFailure} naming a secret that is not there: a server without it would fail later, and say less.
 */
export async function startableServers(
  { mcpServers }: AgentDefinition,
  kernel: Pick<PluginKernel, 'collect' | 'name'>,
): Promise<AcpMcpServer[]> {
  const started: AcpMcpServer[] = []
  for (const { name, command, args = [], env: plain = {}, secret_env: secrets = {} } of mcpServers) {
    if (command === undefined) continue
    const env = Object.entries(plain).map(([variable, value]) => ({ name: variable, value }))
    for (const [variable, reference] of Object.entries(secrets)) {
      const what = `${variable} of the MCP server ${name}`
      const value = await resolveSecret(kernel, reference, what).catch(error => {
        throw new AgentFailure('startup_failure', messageOf(error), error)
      })
      env.push({ name: variable, value })
    }
    started.push({ name, command, args, env })
  }
  return started
}
