import { command as commandLine } from '../../../kernel/kit/commands/command-line.js'
import type { Provider } from './api.js'

/** Why a provider cannot run here, and the next step, for people. */
export interface Missing {
  readonly code: 'provider_cli_missing' | 'provider_cli_elsewhere' | 'provider_endpoint_missing'
  readonly message: string
  /** A command for the person. */
  readonly next: string | undefined
}

/** Whether a required endpoint is configured, in its entry or in the daemon's environment. */
export const hasEndpoint = ({ needsEndpoint, baseUrl }: Provider, env: Readonly<Record<string, string | undefined>>) =>
  !needsEndpoint || Boolean(baseUrl ?? env.OPENAI_BASE_URL)

/** The missing part of an undetected provider: the program or the endpoint. */
export function missingOf(provider: Provider, env: Readonly<Record<string, string | undefined>>): Missing {
  if (hasEndpoint(provider, env)) {
    const message = missingProgram(provider.argv[0] ?? '')
    return { code: 'provider_cli_missing', message, next: provider.install }
  }
  const message = `no endpoint is configured for ${provider.displayName}`
  return { code: 'provider_endpoint_missing', message, next: commandLine('init') }
}

export const missingProgram = (command: string) => `the command ${command} is not on the PATH of the daemon`

/** The problem of a program that is on the caller's PATH but not on the daemon's. */
export function foundElsewhere(executable: string): Missing {
  const message = `${executable} is not on the PATH that the daemon was started with`
  return { code: 'provider_cli_elsewhere', message, next: commandLine('daemon restart') }
}
