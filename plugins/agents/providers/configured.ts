import type { ProviderSettings } from '../../../schemas/settings/entries.js'
import type { CatalogEntry, Provider } from './api.js'
import { OWN_AGENT_PROGRAM } from './built-in.js'
import { programOf } from './program.js'

/** All providers, and names of contributed ones that conflict with others. */
export interface Providing {
  readonly all: readonly Provider[]
  readonly taken: readonly string[]
}

/**
 * The built-in and contributed providers, modified by their configuration entries, and further entries that have a
 * command.
 */
export function withEntries(
  catalog: readonly Provider[],
  contributed: readonly CatalogEntry[],
  entries: Readonly<Record<string, ProviderSettings>>,
): Providing {
  const known = [...catalog]
  const taken: string[] = []
  for (const { name, settings } of contributed) {
    if (known.some(provider => provider.name === name)) taken.push(name)
    else known.push(over(fresh(name), settings, known))
  }
  const changed = known.map(provider => {
    const entry = Object.hasOwn(entries, provider.name) ? entries[provider.name] : undefined
    if (!entry) return provider
    // The provider for agents' own commands keeps an empty command, whatever its entry has.
    return provider.argv.length > 0 ? over(provider, entry, known) : { ...provider, ...stated(entry), ...passed(entry) }
  })
  const added = Object.entries(entries).flatMap(([name, entry]) =>
    entry.command?.trim() && !known.some(provider => provider.name === name) ? [over(fresh(name), entry, known)] : [],
  )
  return { all: [...changed, ...added], taken }
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

function over(provider: Provider, entry: ProviderSettings, known: readonly Provider[]): Provider {
  const words = wordsOf(entry.command)
  const argv = words.length > 0 ? words : provider.argv
  const loginCheck = wordsOf(entry.auth_status_command)
  const model = entry.like === undefined ? undefined : known.find(({ name }) => name === entry.like)
  // An entry that starts another provider's agent has the same needs.
  const alike = model ?? (provider.packages || provider.ownFiles ? undefined : programOf(known, argv))
  return {
    ...provider,
    ...(alike && needsOf(alike)),
    argv,
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
    ...stated(entry),
    ...passed(entry),
  }
}

/** Members of a provider about the needs of its agent. */
const NEEDS = [
  'install',
  'login',
  'loginCheck',
  'ownFiles',
  'ownFilesEnv',
  'codeFiles',
  'askingEnv',
  'askingModes',
  'sandboxedArgs',
  'sandboxedNote',
  'keyVariables',
  'neverAsks',
  'withholds',
  'mcpTransports',
] as const satisfies readonly (keyof Provider)[]

const needsOf = (provider: Provider): Partial<Provider> =>
  Object.fromEntries(NEEDS.flatMap(name => (provider[name] === undefined ? [] : [[name, provider[name]]])))

/** Needs of the agent in an entry. */
function stated(entry: ProviderSettings): Partial<Provider> {
  return {
    ...(entry.install_command && { install: entry.install_command }),
    ...(entry.programs && { programs: entry.programs }),
    ...(entry.packages && { packages: entry.packages }),
    ...(entry.own_files && { ownFiles: entry.own_files }),
    ...(entry.own_files_env && { ownFilesEnv: entry.own_files_env }),
    ...(entry.code_files && { codeFiles: entry.code_files }),
    ...(entry.env && { env: entry.env }),
    ...(entry.asking_env && { askingEnv: entry.asking_env }),
    ...(entry.asking_modes && { askingModes: entry.asking_modes }),
    ...(entry.sandboxed_args && { sandboxedArgs: entry.sandboxed_args }),
    ...(entry.sandboxed_note && { sandboxedNote: entry.sandboxed_note }),
    ...(entry.key_variables && { keyVariables: entry.key_variables }),
    ...(entry.never_asks !== undefined && { neverAsks: entry.never_asks }),
    ...(entry.withholds && { withholds: entry.withholds }),
    ...(entry.mcp_transports && { mcpTransports: entry.mcp_transports }),
  }
}

/** Environment and model settings in an entry. */
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

/** Words of a command, split at spaces; quotes have no meaning, and no shell is involved. */
const wordsOf = (command = '') => command.split(/\s+/).filter(Boolean)

/** The configuration entry equivalent to a provider. */
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
  ...(provider.install && { install_command: provider.install }),
  ...lists(provider),
  ...(provider.askingEnv && { asking_env: { ...provider.askingEnv } }),
  ...(provider.sandboxedNote && { sandboxed_note: provider.sandboxedNote }),
  ...(provider.neverAsks && { never_asks: true }),
})

const lists = (provider: Provider): ProviderSettings => ({
  ...(provider.programs && { programs: [...provider.programs] }),
  ...(provider.packages && { packages: [...provider.packages] }),
  ...(provider.ownFiles && { own_files: [...provider.ownFiles] }),
  ...(provider.ownFilesEnv && { own_files_env: [...provider.ownFilesEnv] }),
  ...(provider.codeFiles && { code_files: [...provider.codeFiles] }),
  ...(provider.askingModes && { asking_modes: [...provider.askingModes] }),
  ...(provider.sandboxedArgs && { sandboxed_args: [...provider.sandboxedArgs] }),
  ...(provider.keyVariables && { key_variables: [...provider.keyVariables] }),
  ...(provider.withholds && { withholds: [...provider.withholds] }),
  ...(provider.mcpTransports && { mcp_transports: [...provider.mcpTransports] }),
})
