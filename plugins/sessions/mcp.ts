import type { AgentDefinition } from '../agents/api.js'

/** A server as the protocol wants it: one that the agent starts itself. */
export interface AcpMcpServer {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: readonly { readonly name: string; readonly value: string }[]
}

/**
 * The MCP servers of a definition that need nothing but to be started. Those with secrets or over HTTP are left to a
 * plugin that taps `prepare`: what they need is not known here.
 */
export function startableServers({ mcpServers }: AgentDefinition): AcpMcpServer[] {
  return mcpServers.flatMap(({ name, command, args, env, secret_env: secrets }) => {
    if (command === undefined || Object.keys(secrets ?? {}).length > 0) return []
    const variables = Object.entries(env ?? {}).map(([variable, value]) => ({ name: variable, value }))
    return [{ name, command, args: args ?? [], env: variables }]
  })
}
