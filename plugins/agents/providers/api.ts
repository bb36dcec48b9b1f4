import * as v from 'valibot'
import { command as commandLine } from '../../../kernel/kit/commands/command-line.js'
import { SecretErrors } from '../../../kernel/kit/secret-ref.js'
import { type Actor, defineErrors, event, registry, token } from '../../../kernel/plugin.js'
import type { Provider as WireProvider } from '../../../schemas/providers.js'
import type { CuratedModel, ProviderSettings, PutProviderBody } from '../../../schemas/settings/entries.js'
import { KEY_ERRORS, VaultErrors, WRITE_ERRORS } from '../../access/vault/api.js'
import { ProviderEntry, ProviderName } from './entry.js'

export { BUILT_IN_PROVIDER, OWN_AGENT } from './built-in.js'
export { findExecutable } from './detect.js'
export { ISOLATED, looksSecret, searchPath } from './environment.js'

export type ProviderSecret = NonNullable<PutProviderBody['secrets']>[number]

/** A secret that a provider's processes get as a variable; the configuration entry has only its reference. */
export interface CredentialSlot {
  readonly name: string
  /** `env:NAME` or `vault:providers/…`. */
  readonly ref: string
  readonly variable: string
  /** Whether the provider cannot start without this secret. */
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
  /** Alternative names of its program. */
  readonly programs?: readonly string[]
  /** Registry packages that contain it, without versions: they identify programs started by `npx` and similar launchers. */
  readonly packages?: readonly string[]
  /** Variables of its processes, without secrets. */
  readonly env?: Readonly<Record<string, string>>
  /** Client capabilities that are not offered to it, because it fails with them. */
  readonly withholds?: readonly ('fs' | 'terminal' | 'elicitation')[]
  /** Transports to MCP servers that work, if fewer than it claims. */
  readonly mcpTransports?: readonly ('stdio' | 'http')[]
  /** The shell command that a person types to install it; shown, never run. */
  readonly install?: string
  /** The shell command that a person types to log in; shown, never run. */
  readonly login?: string
  /** Whether it never asks for permissions: its tools run without asking. */
  readonly neverAsks?: boolean
  /** Ids of its modes that ask for permission, if they differ from the usual ones. */
  readonly askingModes?: readonly string[]
  /** Variables that make it ask for permissions that its defaults would skip. */
  readonly askingEnv?: Readonly<Record<string, string>>
  /**
   * Arguments for a run without its own sandbox, which cannot start inside another one, and with questions before
   * anything not known to be harmless. Used in a sandbox for a session that asks; with `approve-all` only its sandbox
   * is switched off.
   */
  readonly sandboxedArgs?: readonly string[]
  /** Additional instruction for such a session, if arguments are not sufficient. */
  readonly sandboxedNote?: string
  /** Variables with its key, for a hint when one is set but withheld. */
  readonly keyVariables?: readonly string[]
  /** Variables of the daemon that its processes get even though they look like secrets. */
  readonly envAllow?: readonly string[]
  /** Secrets that its processes get as variables. */
  readonly slots?: readonly CredentialSlot[]
  /** Whether it needs a configured endpoint. */
  readonly needsEndpoint?: true
  /** URL of that endpoint, and the initial model. */
  readonly baseUrl?: string
  readonly model?: string
  /** The operator's settings of its models. */
  readonly curated?: readonly CuratedModel[]
  /** Its files and folders below HOME, including its login; a sandbox allows writes there. */
  readonly ownFiles?: readonly string[]
  /** Variables that name another folder for them. */
  readonly ownFilesEnv?: readonly string[]
  /** Files below HOME or in a workspace that make it run code on its next start: hooks, plugins, MCP servers. */
  readonly codeFiles?: readonly string[]
  /** Command and arguments that exit with 0 if it is logged in. */
  readonly loginCheck?: readonly string[]
}

export interface ProvidersApi {
  /** All providers in catalog order. */
  list(): readonly Provider[]
  get(name: string): Provider | undefined
  /** @throws Fault `provider_not_found` (404) */
  named(name: string): Provider
  /** A provider as its route shows it; undefined if there is none. */
  shown(name: string): Promise<WireProvider | undefined>
  /** Configuration entry of a provider; undefined if there is none. */
  entry(name: string): ProviderSettings | undefined
  /** The provider whose program a command line starts, by the program's name or by the package of a launcher. */
  programOf(argv: readonly string[]): Provider | undefined
  /** The provider that runs an agent's own command. */
  readonly builtIn: Provider
  /**
   * Whether its command is on the daemon's PATH and a required endpoint is configured; always true for the built-in
   * one.
   */
  detected(provider: Provider): Promise<boolean>
  /** Result of its last login check; undefined if it was never checked or cannot be. */
  isLoggedIn(provider: Provider): boolean | undefined
  /** Absolute path of an executable in the environment of provider processes; undefined if not found. */
  executable(command: string): Promise<string | undefined>
  /**
   * Environment of a process of this provider: the daemon's filtered or isolated by policy, the daemon's bin directory
   * first in PATH, stale SVC_ values cleared, the provider's own SVC_PROVIDER… values set, then allowed variables and
   * its secrets. Throws the fault of a missing required secret.
   */
  environment(provider: Provider): Promise<Record<string, string>>
  /** Variables of the daemon that look like keys of this provider and are withheld from its processes. */
  withheld(provider: Provider): readonly string[]
  /** The configuration entry equivalent to a built-in provider; undefined for others. */
  builtInEntry(name: string): ProviderSettings | undefined
  /** Names of the used definitions that this provider starts. */
  users(name: string): Promise<readonly string[]>
  /** Whether the secret of a reference is available now. */
  isPresent(ref: string): Promise<boolean>
  /**
   * Stores secrets below `vault:providers/<name>/`, all or none. Resolves with a function that restores the previous
   * ones.
   * @throws Fault `provider_secret_foreign`, `provider_vault_missing`, and those of the vault
   */
  storeSecrets(name: string, secrets: readonly ProviderSecret[], actor: Actor): Promise<() => Promise<void>>
  /**
   * Prepares the deletion of a provider's entry. Resolves with a function to call after the write: it deletes the
   * secrets if the entry is gone.
   */
  deleting(name: string): Promise<() => Promise<void>>
  /** The provider of `defaults.provider`; undefined if not set or not in the catalog. */
  readonly preferred: Provider | undefined
}

/** A used definition and the provider or command it starts. */
export interface ProviderUse {
  readonly provider: string
  /** Name of the definition. */
  readonly by: string
  /** Its own command, if that is started instead of the provider's. */
  readonly command?: string | undefined
}

/** Contributes the used definitions, so that `svc doctor` can report missing commands. */
export interface ProviderUser {
  readonly read: () => Promise<readonly ProviderUse[]>
}

export const ProviderUsers = registry<ProviderUser>('providers.users@1', v.looseObject({ read: v.function() }))

/** A provider of an extension, with the members of a configuration entry. */
export interface CatalogEntry {
  /** Of a-z, 0-9, _ and -; names of built-in providers are ignored. */
  readonly name: string
  readonly settings: ProviderSettings
}

/** Contributes providers to the catalog. A configuration entry modifies them like built-in ones. */
export const ProviderCatalog = registry<CatalogEntry>(
  'providers.catalog@1',
  v.looseObject({ name: ProviderName, settings: ProviderEntry }),
)

export const Providers = token<ProvidersApi>('providers@1')

const failing = v.object({ provider: v.string(), message: v.optional(v.string()) })
export type ProviderEvent = v.InferOutput<typeof failing>
/**
 * A provider began to refuse its agents for lack of a login. Each of these events is written once, until another one
 * follows.
 */
export const ProviderAuthRequired = event('provider.auth_required', failing)
/** A provider began to limit requests, or its quota is used up. */
export const ProviderRateLimited = event('provider.rate_limited', failing)
/** A provider began to deny requests of its account. */
export const ProviderPermissionDenied = event('provider.permission_denied', failing)
/** A provider became unreachable or overloaded. */
export const ProviderUnavailable = event('provider.unavailable', failing)
/** A turn completed after one of these events. */
export const ProviderRecovered = event('provider.recovered', failing)

export const ProviderErrors = defineErrors({
  provider_not_found: { status: 404, message: 'no such provider', next: commandLine('provider list') },
  provider_probe_unavailable: {
    status: 422,
    message: 'the login status of this provider cannot be checked',
    next: commandLine('provider list'),
  },
  provider_secret_foreign: {
    status: 400,
    message: 'this reference does not belong to this provider',
    next: 'use a reference like vault:providers/<provider>/<variable>',
  },
  provider_vault_missing: {
    status: 503,
    message: 'the vault does not run, so no secret can be stored',
    next: commandLine('plugin list'),
  },
  provider_endpoint_missing: {
    status: 422,
    message: 'no endpoint is configured for this provider',
    next: commandLine('init'),
  },
  provider_cli_missing: {
    status: 422,
    message: 'the command of this provider is not on the PATH of the daemon',
    next: commandLine('provider list'),
  },
})

/** Errors of the environment of a provider's program, which may hold secrets. */
export const ENVIRONMENT_ERRORS = [
  SecretErrors.secret_ref_invalid,
  SecretErrors.secret_resolver_missing,
  SecretErrors.secret_resolver_conflict,
  SecretErrors.secret_missing,
  VaultErrors.vault_secret_damaged,
  ...KEY_ERRORS,
] as const

/** Errors of storing secrets of a provider. */
export const SECRET_ERRORS = [
  ProviderErrors.provider_secret_foreign,
  ProviderErrors.provider_vault_missing,
  VaultErrors.vault_secret_damaged,
  ...WRITE_ERRORS,
] as const
