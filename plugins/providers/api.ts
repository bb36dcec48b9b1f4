import { defineErrors, registry, token } from '../../kernel/plugin.js'

export { ISOLATED, looksSecret, searchPath } from './environment.js'

/** How agents of one vendor are started. */
export interface Provider {
  readonly name: string
  readonly displayName: string
  /** Command and arguments of the ACP process; empty for the built-in one, which runs the agent's own command. */
  readonly argv: readonly string[]
  readonly harness: 'acp' | 'pi_acp'
  readonly authMode: 'native_cli' | 'bound_secret' | 'none'
  readonly envPolicy: 'filtered' | 'isolated'
  readonly homePolicy: 'operator' | 'isolated'
  readonly runtimeProvider: string
  /** The shell command that a person types to install it; shown, never run. */
  readonly install?: string
  /** The shell command that a person types to log in; shown, never run. */
  readonly login?: string
  /** Command and arguments that end with 0 when it is logged in. */
  readonly loginCheck?: readonly string[]
}

export interface ProvidersApi {
  /** In catalog order. */
  list(): readonly Provider[]
  get(name: string): Provider | undefined
  /** The one that runs an agent's own command. */
  readonly builtIn: Provider
  /** Is its command on the PATH of the daemon; the built-in one always is. */
  detected(provider: Provider): Promise<boolean>
  /** Absolute path of an executable as a process of a provider would find it; undefined when there is none. */
  executable(command: string): Promise<string | undefined>
  /** Environment of a process of this provider: the daemon's filtered or isolated by policy, the daemon's bin directory first in PATH, stale SVC_ values cleared, the provider's own SVC_PROVIDER… values set. */
  environment(provider: Provider): Promise<Record<string, string>>
  /** The one of `defaults.provider`; undefined when none is set, or when it is not in the catalog. */
  readonly preferred: Provider | undefined
}

/** A definition that is in use, and what starts it. */
export interface ProviderUse {
  readonly provider: string
  /** Name of the definition. */
  readonly by: string
  /** Its own command, when that and not the provider's is started. */
  readonly command?: string | undefined
}

/** Contributes the definitions that are in use, so that doctor can tell which command is missing. */
export interface ProviderUser {
  readonly read: () => Promise<readonly ProviderUse[]>
}

export const ProviderUsers = registry<ProviderUser>('providers.users@1')

export const Providers = token<ProvidersApi>('providers@1')

export const BUILT_IN_PROVIDER = 'local'

export const ProviderErrors = defineErrors({
  provider_not_found: { status: 404, message: 'no such provider', next: 'svc provider list' },
  provider_probe_unavailable: {
    status: 422,
    message: 'whether this provider is logged in cannot be asked',
    next: 'svc provider list',
  },
  provider_cli_missing: {
    status: 422,
    message: 'the command of this provider is not on the PATH of the daemon',
    next: 'svc provider list',
  },
})
