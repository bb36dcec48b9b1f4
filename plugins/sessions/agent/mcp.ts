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
 * @param env the daemon's, for references `env:NAME`
 */
export function startableServers(
  { mcpServers }: AgentDefinition,
  env: Readonly<Record<string, string | undefined>>,
): AcpMcpServer[] {
  return mcpServers.flatMap(({ name, command, args, env: plain, secret_env: secrets }) => {
    if (command === undefined) return []
    const resolved = Object.entries(secrets ?? {}).map(([variable, reference]) => {
      return [variable, resolve(reference, `${variable} of the MCP server ${name}`, env)] as const
    })
    const variables = [...Object.entries(plain ?? {}), ...resolved]
    return [{ name, command, args: args ?? [], env: variables.map(([variable, value]) => ({ name: variable, value })) }]
  })
}

function resolve(reference: string, what: string, env: Readonly<Record<string, string | undefined>>): string {
  const [, kind, variable = ''] = /^(vault|env):(.+)$/.exec(reference) ?? []
  const value = kind === 'env' ? env[variable] : undefined
  if (value) return value
  // What is no reference may be the secret itself: it is not repeated.
  if (!kind) throw new AgentFailure('startup_failure', `${what} is no reference: vault:… or env:NAME`)
  const why = kind === 'vault' ? 'this daemon has no vault' : `the daemon has no variable ${variable}`
  throw new AgentFailure('startup_failure', `${what} is to come from ${reference}: ${why}`)
}
