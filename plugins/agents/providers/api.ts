import * as v from 'valibot'
import { command as commandLine } from '../../../kernel/kit/commands/command-line.js'
import { type Actor, defineErrors, event, registry, token } from '../../../kernel/plugin.js'
import type { CuratedModel, ProviderSettings, PutProviderBody } from '../../../schemas/settings/entries.js'
import { ProviderEntry, ProviderName } from './entry.js'

export { BUILT_IN_PROVIDER, OWN_AGENT } from './built-in.js'
export { findExecutable } from './detect.js'
export { ISOLATED, looksSecret, searchPath } from './environment.js'

export type ProviderSecret = NonNullable<PutProviderBody['secrets']>[number]

/** A secret that a provider's processes get as a variable; the entry of the configuration names it and never holds it. */
export interface CredentialSlot {
  readonly name: string
  /** `env:NAME` or `vault:providers/…`. */
  readonly ref: string
  readonly variable: string
  /** Without its secret nothing of this provider is started. */
  readonly required: boolean
}

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
  /** Further names of its program. */
  readonly programs?: readonly string[]
  /** Packages of a registry that contain it, without versions: what `npx` and its kin start is known by them. */
  readonly packages?: readonly string[]
  /** Variables of its processes; no secrets. */
  readonly env?: Readonly<Record<string, string>>
  /** Capabilities of a client that it is not offered, because it fails with them. */
  readonly withholds?: readonly ('fs' | 'terminal' | 'elicitation')[]
  /** How it reaches MCP servers, where it reaches fewer than it says. */
  readonly mcpTransports?: readonly ('stdio' | 'http')[]
  /** The shell command that a person types to install it; shown, never run. */
  readonly install?: string
  /** The shell command that a person types to log in; shown, never run. */
  readonly login?: string
  /** It has no questions at all: what its tools do, it does without asking. */
  readonly neverAsks?: boolean
  /** Ids of its own modes in which it asks, where these are other ones than agents mostly have. */
  readonly askingModes?: readonly string[]
  /** Variables that make it ask where its own defaults would not. */
  readonly askingEnv?: Readonly<Record<string, string>>
  /**
   * It confines its own tools with a sandbox that cannot start inside another one: arguments that have it do without, and ask before
   * whatever is not known to be harmless. Given in a sandbox to a session that asks; one with `approve-all` asks it for no sandbox.
   */
  readonly sandboxedArgs?: readonly string[]
  /** What such a session tells it beside its instructions, where arguments are not enough. */
  readonly sandboxedNote?: string
  /** Variables that hold its key, for a hint when one is set and withheld. */
  readonly keyVariables?: readonly string[]
  /** Names of variables of the daemon that its processes get although they look like secrets. */
  readonly envAllow?: readonly string[]
  /** Secrets that its processes get as variables. */
  readonly slots?: readonly CredentialSlot[]
  /** It runs against an endpoint that somebody has to name. */
  readonly needsEndpoint?: true
  /** URL of that endpoint, and the model to begin with. */
  readonly baseUrl?: string
  readonly model?: string
  /** What the operator says of its models. */
  readonly curated?: readonly CuratedModel[]
  /** Files and folders that it keeps below HOME, its login among them; a sandbox lets it write there. */
  readonly ownFiles?: readonly string[]
  /** Variables that name another folder for them. */
  readonly ownFilesEnv?: readonly string[]
  /** What makes it run code when it starts again, below HOME or in a workspace: hooks, plugins, MCP servers. */
  readonly codeFiles?: readonly string[]
  /** Command and arguments that end with 0 when it is logged in. */
  readonly loginCheck?: readonly string[]
}

export interface ProvidersApi {
  /** In catalog order. */
  list(): readonly Provider[]
  get(name: string): Provider | undefined
  /** Throws `provider_not_found` (404). */
  named(name: string): Provider
  /** What the configuration says of a provider; undefined when that is nothing. */
  entry(name: string): ProviderSettings | undefined
  /** The one whose program a command line starts: by the name of the program, or by the package that a launcher starts. */
  programOf(argv: readonly string[]): Provider | undefined
  /** The one that runs an agent's own command. */
  readonly builtIn: Provider
  /** Is its command on the PATH of the daemon, and its endpoint named where it needs one; the built-in one always is. */
  detected(provider: Provider): Promise<boolean>
  /** What its last login check said; undefined: it was never asked, or cannot be. */
  isLoggedIn(provider: Provider): boolean | undefined
  /** Absolute path of an executable as a process of a provider would find it; undefined when there is none. */
  executable(command: string): Promise<string | undefined>
  /** Environment of a process of this provider: the daemon's filtered or isolated by policy, the daemon's bin directory first in PATH, stale SVC_ values cleared, the provider's own SVC_PROVIDER… values set, then what is let through by name and its secrets. Throws the fault of a required secret that is not there. */
  environment(provider: Provider): Promise<Record<string, string>>
  /** Variables of the daemon that look like keys of this provider, and that its processes do not get. */
  withheld(provider: Provider): readonly string[]
  /** What an entry of the configuration would say to make a built-in provider what it is; undefined for others. */
  builtInEntry(name: string): ProviderSettings | undefined
  /** Names of the definitions in use that this provider starts. */
  users(name: string): Promise<readonly string[]>
  /** Whether the secret of a reference can be handed to a process now. */
  isPresent(ref: string): Promise<boolean>
  /**
   * Stores secrets below `vault:providers/<name>/`, all or none. Resolves to what puts back those that were there before.
   * @throws Fault `provider_secret_foreign`, `provider_vault_missing`, and those of the vault
   */
  storeSecrets(name: string, secrets: readonly ProviderSecret[], actor: Actor): Promise<() => Promise<void>>
  /**
   * The entry of a provider is about to be deleted. Resolves to what is called once the file was written, or was not: the secrets
   * go if the entry did.
   */
  deleting(name: string): Promise<() => Promise<void>>
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

export const ProviderUsers = registry<ProviderUser>('providers.users@1', v.looseObject({ read: v.function() }))

/** A provider of an extension, with the members of an entry of the configuration. */
export interface CatalogEntry {
  /** Of a-z, 0-9, _ and -; a name that is built in is not taken. */
  readonly name: string
  readonly settings: ProviderSettings
}

/** Contributes providers to the catalog. An entry of the configuration changes them as it changes built-in ones. */
export const ProviderCatalog = registry<CatalogEntry>(
  'providers.catalog@1',
  v.looseObject({ name: ProviderName, settings: ProviderEntry }),
)

export const Providers = token<ProvidersApi>('providers@1')

const failing = v.object({ provider: v.string(), message: v.optional(v.string()) })
export type ProviderEvent = v.InferOutput<typeof failing>
/** A provider began to refuse its agents, for lack of a login. Each of these events is written once, until another one is. */
export const ProviderAuthRequired = event('provider.auth_required', failing)
/** It began to limit requests, or a quota is used up. */
export const ProviderRateLimited = event('provider.rate_limited', failing)
/** It began to deny what its account asks for. */
export const ProviderPermissionDenied = event('provider.permission_denied', failing)
/** It began not to be reached, or to be overloaded. */
export const ProviderUnavailable = event('provider.unavailable', failing)
/** A turn of it completed after one of these. */
export const ProviderRecovered = event('provider.recovered', failing)

export const ProviderErrors = defineErrors({
  provider_not_found: { status: 404, message: 'no such provider', next: commandLine('provider list') },
  provider_probe_unavailable: {
    status: 422,
    message: 'whether this provider is logged in cannot be asked',
    next: commandLine('provider list'),
  },
  provider_secret_foreign: {
    status: 400,
    message: 'this reference is not of this provider',
    next: 'name the secret vault:providers/<provider>/<variable>',
  },
  provider_vault_missing: {
    status: 503,
    message: 'the vault does not run, so no secret can be stored',
    next: commandLine('plugin list'),
  },
  provider_endpoint_missing: {
    status: 422,
    message: 'no endpoint is named for this provider',
    next: commandLine('init'),
  },
  provider_cli_missing: {
    status: 422,
    message: 'the command of this provider is not on the PATH of the daemon',
    next: commandLine('provider list'),
  },
})
