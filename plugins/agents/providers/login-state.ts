import { command } from '../../../kernel/kit/commands/command-line.js'
import type { ProviderAuthStatus } from '../../../schemas/providers.js'
import type { Provider } from './api.js'
import type { Missing } from './missing.js'
import type { Probe } from './probe.js'

/**
 * State of a provider: `ready` means that its login was checked, or that it cannot be checked.
 * @param probe the last login check
 * @param lacked the problem of its secrets
 * @param canAsk whether the program for login checks exists
 */
export function stateOf(
  { name, displayName, argv, authMode, install, login, loginCheck }: Provider,
  missing: Missing | undefined,
  probe: Probe | undefined,
  lacked: string | undefined,
  canAsk: boolean,
): Pick<ProviderAuthStatus, 'state' | 'code' | 'message'> {
  const help = login ? `; log in: ${login}` : ''
  if (missing) {
    const { code, message, next } = missing
    const what =
      code === 'provider_cli_missing'
        ? 'install it'
        : code === 'provider_cli_elsewhere'
          ? 'restart it from here'
          : 'set one'
    return { state: 'missing', code, message: next ? `${message}; ${what}: ${next}` : message }
  }
  if (lacked !== undefined) return { state: 'not_authenticated', code: 'provider_secret_missing', message: lacked }
  if (probe && probe.exitCode !== 0) {
    const message = `${displayName} is not logged in${help}`
    return { state: 'not_authenticated', code: 'provider_not_authenticated', message }
  }
  if (probe || argv.length === 0 || authMode !== 'native_cli') return { state: 'ready' }
  if (loginCheck && !canAsk) {
    const how = install ? `; install it: ${install}` : ''
    const message = `installed; ${loginCheck[0]}, which checks the login, is not on the PATH of the daemon${how}`
    return { state: 'ready', code: 'provider_login_unknown', message }
  }
  if (loginCheck) {
    const message = `its login status was not checked yet: ${command('provider auth status', name)}`
    return { state: 'unchecked', code: 'provider_login_unchecked', message }
  }
  const message = `installed; its login status is unknown${help}`
  return { state: 'ready', code: 'provider_login_unknown', message }
}
