import type { ProviderSettings } from '../../../schemas/settings/entries.js'
import type { Provider } from './api.js'
import { OWN_AGENT_PROGRAM } from './built-in.js'

/**
 * The providers that there are: the built-in ones, each as its entry of the configuration changes it, and the entries of other
 * names that have a command.
 */
export function withEntries(
  catalog: readonly Provider[],
  entries: Readonly<Record<string, ProviderSettings>>,
): readonly Provider[] {
  const changed = catalog.map(provider => {
    const entry = Object.hasOwn(entries, provider.name) ? entries[provider.name] : undefined
    if (!entry) return provider
    // The one that runs an agent's own command has none, whatever an entry says.
    return provider.argv.length > 0 ? over(provider, entry) : { ...provider, ...passed(entry) }
  })
  const added = Object.entries(entries).flatMap(([name, entry]) =>
    entry.command?.trim() && !catalog.some(provider => provider.name === name) ? [over(fresh(name), entry)] : [],
  )
  return [...changed, ...added]
}

const fresh = (name: string): Provider => ({
  name,
  displayName: name,
  argv: [],
  harness: 'acp',
  authMode: 'native_cli',
  envPolicy: 'filtered',
  homePolicy: 'operator',
  runtimeProvider: name,
})

function over(provider: Provider, entry: ProviderSettings): Provider {
  const argv = wordsOf(entry.command)
  const loginCheck = wordsOf(entry.auth_status_command)
  return {
    ...provider,
    ...(argv.length > 0 && { argv }),
    ...(argv[0] === OWN_AGENT_PROGRAM && { needsEndpoint: true as const }),
    ...(entry.base_url && { baseUrl: entry.base_url }),
    ...(loginCheck.length > 0 && { loginCheck }),
    ...(entry.display_name && { displayName: entry.display_name }),
    ...(entry.harness && { harness: entry.harness }),
    ...(entry.auth_mode && { authMode: entry.auth_mode }),
    ...(entry.env_policy && { envPolicy: entry.env_policy }),
    ...(entry.home_policy && { homePolicy: entry.home_policy }),
    ...(entry.runtime_provider && { runtimeProvider: entry.runtime_provider }),
    ...(entry.auth_login_command && { login: entry.auth_login_command }),
    ...passed(entry),
  }
}

/** What an entry says of the environment of processes, and of models. */
function passed(entry: ProviderSettings): Pick<Provider, 'envAllow' | 'slots' | 'model' | 'curated'> {
  const { env_allow: envAllow, credential_slots: slots, models } = entry
  return {
    ...(models?.default && { model: models.default }),
    ...(models?.curated && { curated: models.curated }),
    ...(envAllow && { envAllow }),
    ...(slots && {
      slots: slots.map(({ name, secret_ref: ref, target_env: variable, required }) => ({
        name,
        ref,
        variable,
        required,
      })),
    }),
  }
}

/** Words of a command; quotes mean nothing, and no shell ever reads it. */
const wordsOf = (command = '') => command.split(/\s+/).filter(Boolean)

/** What an entry of a provider would say to make it what it is. */
export const entryOf = (provider: Provider): ProviderSettings => ({
  auth_mode: provider.authMode,
  display_name: provider.displayName,
  env_policy: provider.envPolicy,
  harness: provider.harness,
  home_policy: provider.homePolicy,
  runtime_provider: provider.runtimeProvider,
  ...(provider.argv.length > 0 && { command: provider.argv.join(' ') }),
  ...(provider.login !== undefined && { auth_login_command: provider.login }),
  ...(provider.loginCheck && { auth_status_command: provider.loginCheck.join(' ') }),
})
