import { command as commandLine } from '../../../kernel/kit/commands/command-line.js'
import type { Provider } from './api.js'

/** Why a provider cannot run here, in words for a person, and what to do about it. */
export interface Missing {
  readonly code: 'provider_cli_missing' | 'provider_cli_elsewhere' | 'provider_endpoint_missing'
  readonly message: string
  /** A command to type. */
  readonly next: string | undefined
}

/** Is the endpoint named that it needs: by its entry, or by the environment of the daemon. */
export const hasEndpoint = ({ needsEndpoint, baseUrl }: Provider, env: Readonly<Record<string, string | undefined>>) =>
  !needsEndpoint || Boolean(baseUrl ?? env.OPENAI_BASE_URL)

/** What one lacks that is not there: the program, or the endpoint. */
export function missingOf(provider: Provider, env: Readonly<Record<string, string | undefined>>): Missing {
  if (hasEndpoint(provider, env)) {
    const message = missingProgram(provider.argv[0] ?? '')
    return { code: 'provider_cli_missing', message, next: provider.install }
  }
  const message = `no endpoint is named for ${provider.displayName}`
  return { code: 'provider_endpoint_missing', message, next: commandLine('init') }
}

export const missingProgram = (command: string) => `the command ${command} is not on the PATH of the daemon`

/** What one lacks whose program the caller has on another PATH than the daemon. */
export function foundElsewhere(executable: string): Missing {
  const message = `${executable} is not on the PATH that the daemon was started with`
  return { code: 'provider_cli_elsewhere', message, next: commandLine('daemon restart') }
}
