import { command } from '../../../../kernel/kit/commands/command-line.js'
import { BUILT_IN_PROVIDER, type Provider, type ProvidersApi } from '../../../agents/providers/api.js'
import { AgentFailure } from './failure.js'

/** Maximum number of withheld variables that an error names. */
const WITHHELD_NAMED = 5

/** Names that the environment of an agent lacks because they look like secrets; undefined when none of them can matter. */
export function withheldText(
  providers: ProvidersApi,
  program: Provider | undefined,
  provider: Provider | undefined,
): string | undefined {
  const names = providers.withheld({ ...(provider ?? providers.builtIn), ...program, ...passedBy(provider) })
  if (names.length === 0) return undefined
  const shown = names.slice(0, WITHHELD_NAMED)
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : ''
  const entry = provider?.name ?? BUILT_IN_PROVIDER
  return `the daemon has ${shown.join(', ')}${more} and does not pass on what looks like a secret; let one through: svc config set providers.${entry} '{"env_allow":["${shown[0]}"]}'`
}

const passedBy = (provider: Provider | undefined) => ({
  envAllow: provider?.envAllow ?? [],
  slots: provider?.slots ?? [],
})

/** The failure with a hint at its end. */
export function withHint(error: AgentFailure, hint: string | undefined): AgentFailure {
  if (hint === undefined) return error
  const told = new AgentFailure(error.kind, `${error.message}; ${hint}`, error)
  told.lastWords = error.lastWords
  told.wantsLogin = error.wantsLogin
  return told
}

/** Login instructions for a provider with an agent of its own. A provider with an endpoint uses a key and has no login. */
export function loginText(provider: Provider | undefined, isSandboxed: boolean): string | undefined {
  if (provider === undefined || provider.needsEndpoint) return undefined
  const { name, argv, ownFiles = [], ownFilesEnv = [] } = provider
  // The sandbox shows login files of the home folder only where the provider declares them.
  if (isSandboxed && ownFiles.length + ownFilesEnv.length === 0) {
    return `the sandbox hides its files in the home folder; name them: svc config set providers.${name}.own_files '[".config/…"]'`
  }
  return argv.length > 0 ? `log in, then send the prompt again: ${command('provider auth login', name)}` : undefined
}
