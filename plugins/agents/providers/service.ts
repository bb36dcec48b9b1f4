import { mkdir } from 'node:fs/promises'
import { shown } from '../../../kernel/kit/text.js'
import { type Actor, iso, messageOf } from '../../../kernel/plugin.js'
import type { StatusProvider } from '../../../schemas/daemon.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type {
  ProbeProviderReply,
  ProviderAuthStatus,
  Provider as WireProvider,
  WorkspaceProvider,
} from '../../../schemas/providers.js'
import type { ProviderSettings } from '../../../schemas/settings/entries.js'
import {
  type Provider,
  ProviderCatalog,
  ProviderErrors,
  type ProviderSecret,
  Providers,
  type ProvidersApi,
  ProviderUsers,
} from './api.js'
import { builtIn, catalog } from './catalog.js'
import { entryOf, type Providing, withEntries } from './configured.js'
import { findExecutable, packageVersion } from './detect.js'
import { EntrySecrets } from './entry-secrets.js'
import { environmentOf, looksSecret, searchPath } from './environment.js'
import { ProviderHealth } from './health.js'
import { stateOf } from './login-state.js'
import { foundElsewhere, hasEndpoint, missingOf, missingProgram } from './missing.js'
import type { K } from './needs.js'
import { type Probe, runProbe } from './probe.js'
import { programOf } from './program.js'
import { DefaultProvider, ProviderEntries } from './settings.js'
import { configuredSlots, isPresent, slotValues, storeSecrets } from './slots.js'

/** Definitions that a doctor item names. */
const USERS_NAMED = 10

/** The launch configuration of agents by vendor, and whether this machine can start them. */
export class ProvidersService implements ProvidersApi {
  readonly builtIn = builtIn
  /** Providers of the last configuration entries. */
  #made: { readonly of: readonly object[]; readonly providing: Providing } | undefined
  /** The last result of a login check, by provider. */
  readonly #probes = new Map<string, Probe>()

  readonly entrySecrets: EntrySecrets
  readonly health: ProviderHealth

  constructor(private readonly kernel: K) {
    this.entrySecrets = new EntrySecrets(kernel, () =>
      Object.keys(kernel.config.get(ProviderEntries)).filter(name => this.builtInEntry(name) === undefined),
    )
    this.health = new ProviderHealth(kernel)
    kernel.config.onChange(ProviderEntries, () => this.entrySecrets.noticed())
    kernel.needs.ownership.owns(Providers, name => this.get(name) !== undefined)
  }

  list(): readonly Provider[] {
    return this.#providing.all
  }

  get #providing(): Providing {
    const entries = this.kernel.config.get(ProviderEntries)
    const contributed = this.kernel.collect(ProviderCatalog).map(({ entry }) => entry)
    const of = [entries, ...contributed]
    const isSame = this.#made?.of.length === of.length && of.every((one, at) => one === this.#made?.of[at])
    if (!this.#made || !isSame) this.#made = { of, providing: withEntries(catalog, contributed, entries) }
    return this.#made.providing
  }

  get(name: string): Provider | undefined {
    return this.list().find(provider => provider.name === name)
  }

  entry(name: string): ProviderSettings | undefined {
    const entries = this.kernel.config.get(ProviderEntries)
    return Object.hasOwn(entries, name) ? entries[name] : undefined
  }

  builtInEntry(name: string): ProviderSettings | undefined {
    const found = catalog.find(provider => provider.name === name)
    return found && entryOf(found)
  }

  async users(name: string): Promise<readonly string[]> {
    const uses = await Promise.all(this.kernel.collect(ProviderUsers).map(({ entry }) => entry.read()))
    const names = uses.flat().flatMap(use => (use.provider === name && use.command === undefined ? [use.by] : []))
    return [...new Set(names)].sort()
  }

  programOf(argv: readonly string[]): Provider | undefined {
    return programOf(this.list(), argv)
  }

  get preferred(): Provider | undefined {
    return this.get(this.kernel.config.get(DefaultProvider))
  }

  async detected(provider: Provider): Promise<boolean> {
    const [command] = provider.argv
    if (command === undefined) return true
    return hasEndpoint(provider, this.kernel.env) && (await this.executable(command)) !== undefined
  }

  isLoggedIn(provider: Provider): boolean | undefined {
    const probe = this.#probes.get(provider.name)
    return probe && probe.exitCode === 0
  }

  executable(command: string): Promise<string | undefined> {
    return findExecutable(command, searchPath(this.kernel.env))
  }

  async environment(provider: Provider): Promise<Record<string, string>> {
    const isolatedHome = this.kernel.home.path('providers', provider.name)
    if (provider.homePolicy === 'isolated') await mkdir(isolatedHome, { recursive: true, mode: 0o700 })
    const own = environmentOf(provider, this.kernel.env, { root: this.kernel.home.root, isolatedHome })
    const stored = await slotValues(provider, this.kernel.needs.vault.current)
    return { ...own, ...stored, ...(await configuredSlots(this.kernel, provider)) }
  }

  withheld({ keyVariables, envAllow = [], slots = [] }: Provider): readonly string[] {
    const allowedNames = new Set([...envAllow, ...slots.map(({ variable }) => variable)])
    const names = keyVariables ?? Object.keys(this.kernel.env).filter(looksSecret)
    return names.filter(name => this.kernel.env[name] && !name.startsWith('SVC_') && !allowedNames.has(name)).sort()
  }

  isPresent(ref: string): Promise<boolean> {
    return isPresent(this.kernel, ref)
  }

  async storeSecrets(name: string, secrets: readonly ProviderSecret[], actor: Actor): Promise<() => Promise<void>> {
    await this.entrySecrets.expect(name)
    return storeSecrets(name, secrets, this.kernel.needs.vault.current, actor)
  }

  deleting(name: string): Promise<() => Promise<void>> {
    return this.entrySecrets.deleting(name)
  }

  /** @throws Fault `provider_not_found` (404) */
  async shown(name: string): Promise<WireProvider | undefined> {
    const provider = this.get(name)
    return provider && this.wire(provider)
  }

  named(name: string): Provider {
    const found = this.get(name)
    if (found) return found
    throw ProviderErrors.provider_not_found(`there is no provider ${shown(name)}`, {
      details: {
        known: this.list()
          .map(provider => provider.name)
          .join(', '),
      },
    })
  }

  /** @param callerPath PATH of the caller, who may have installed a program since the daemon started */
  wireList(callerPath?: string): Promise<WireProvider[]> {
    return Promise.all(this.list().map(provider => this.wire(provider, callerPath)))
  }

  async wire(provider: Provider, callerPath?: string): Promise<WireProvider> {
    const [command] = provider.argv
    const executable = command === undefined ? undefined : await this.executable(command)
    const isElsewhere = command !== undefined && executable === undefined && callerPath !== undefined
    const elsewhere = isElsewhere ? await findExecutable(command, searchPath({ PATH: callerPath })) : undefined
    const version = executable === undefined ? undefined : await packageVersion(executable)
    return {
      name: provider.name,
      display_name: provider.displayName,
      default: provider.name === (this.preferred ?? builtIn).name,
      auth_status: await this.#authStatus(provider, await this.detected(provider), elsewhere),
      ...(command === undefined ? {} : { command: provider.argv.join(' ') }),
      ...(provider.install ? { install_command: provider.install } : {}),
      ...(executable === undefined ? {} : { executable }),
      ...(version === undefined ? {} : { version }),
    }
  }

  /** Checks whether a provider is logged in. Throws `provider_probe_unavailable`, `provider_cli_missing` (422). */
  async probe(name: string): Promise<ProbeProviderReply> {
    const provider = this.named(name)
    const [command, ...args] = provider.loginCheck ?? []
    if (command === undefined) {
      const text = `${provider.displayName} has no command that checks the login`
      throw ProviderErrors.provider_probe_unavailable(text, provider.login ? { next: provider.login } : {})
    }
    const executable = await this.executable(command)
    if (executable === undefined) throw ProviderErrors.provider_cli_missing(missingProgram(command))
    const { clock, home } = this.kernel
    const env = await this.environment(provider)
    const request = { label: `login of ${provider.name}`, argv: [executable, ...args], cwd: home.root, env }
    const probe = await runProbe(clock, () => this.kernel.needs.processes.spawn({ ...request, stdio: 'pipe' }))
    this.#probes.set(provider.name, probe)
    await this.health.loginChecked(provider.name, probe.exitCode === 0)
    return {
      provider: provider.name,
      auth_status: await this.#authStatus(provider, true),
      probe: { duration_ms: probe.durationMs, exit_code: probe.exitCode },
    }
  }

  async #authStatus(provider: Provider, installed: boolean, elsewhere?: string): Promise<ProviderAuthStatus> {
    const probe = this.#probes.get(provider.name)
    return {
      mode: provider.authMode,
      env_policy: provider.envPolicy,
      home_policy: provider.homePolicy,
      ...(provider.login ? { login_command: provider.login } : {}),
      ...(provider.loginCheck ? { status_command: provider.loginCheck.join(' ') } : {}),
      ...(probe ? { last_probe_at: iso(probe.at) } : {}),
      ...(await this.#stateOf(provider, installed, probe, elsewhere)),
    }
  }

  async #stateOf(provider: Provider, installed: boolean, probe: Probe | undefined, elsewhere: string | undefined) {
    const [asker] = provider.loginCheck ?? []
    const canAsk = asker !== undefined && (await this.executable(asker)) !== undefined
    if (installed) return stateOf(provider, undefined, probe, await this.#lackedSecret(provider), canAsk)
    const missing = missingOf(provider, this.kernel.env)
    return stateOf(provider, elsewhere === undefined ? missing : foundElsewhere(elsewhere), probe, undefined, canAsk)
  }

  /** The problem of a missing required secret; undefined if all are available. */
  #lackedSecret(provider: Provider): Promise<string | undefined> {
    return configuredSlots(this.kernel, provider).then(() => undefined, messageOf)
  }

  /** Member `providers` of the status: ready, or the missing command. */
  async status(): Promise<StatusProvider[]> {
    const preferred = this.preferred ?? builtIn
    return Promise.all(
      this.list().map(async provider => ({
        name: provider.name,
        display_name: provider.displayName,
        default: provider.name === preferred.name,
        env_policy: provider.envPolicy,
        home_policy: provider.homePolicy,
        mode: provider.authMode,
        ...((await this.detected(provider)) ? { state: 'ready' } : this.#missing(provider)),
      })),
    )
  }

  #missing(provider: Provider) {
    const { code, message, next } = missingOf(provider, this.kernel.env)
    return { state: 'missing', code, message, ...(next ? { suggested_command: next } : {}) }
  }

  /** Member `providers` of a workspace's detail. */
  detail(): WorkspaceProvider[] {
    return this.list().map(provider => ({
      name: provider.name,
      display_name: provider.displayName,
      auth_mode: provider.authMode,
      env_policy: provider.envPolicy,
      harness: provider.harness,
      home_policy: provider.homePolicy,
      runtime_provider: provider.runtimeProvider,
    }))
  }

  /** The item for providers that can run agents without their own command; a fresh machine has none. */
  async #installedItems(): Promise<DiagnosticItem[]> {
    const programs = this.list().filter(({ name }) => name !== builtIn.name)
    const there = await Promise.all(programs.map(provider => this.detected(provider)))
    const names = programs.filter((_, at) => there[at]).map(provider => provider.displayName)
    const item = { id: 'runtime.providers', category: 'providers', data_freshness: 'live' } as const
    if (names.length > 0) {
      const message = `installed: ${names.join(', ')}`
      return [{ ...item, code: 'provider_ready', severity: 'info', title: 'Agent programs', message }]
    }
    const [first] = programs
    const wanted = programs.flatMap(({ needsEndpoint, argv: [command] }) => (needsEndpoint ? [] : command))
    return [
      {
        ...item,
        code: 'provider_cli_missing',
        severity: 'warning',
        title: 'no agent program is installed',
        message: `none of ${wanted.join(', ')} is on the PATH of the daemon, and no endpoint is configured. Install an agent program (svc provider list) or set an endpoint (svc init); the built-in agent report needs neither`,
        ...(first?.install ? { suggested_command: first.install } : {}),
      },
    ]
  }

  /** Items for ineffective entries: contributed names that are taken, and references to unknown providers. */
  #entryItems(): DiagnosticItem[] {
    const item = { category: 'providers', severity: 'warning', data_freshness: 'live' } as const
    const taken = this.#providing.taken.map(name => ({
      ...item,
      id: `runtime.providers:taken:${name}`,
      code: 'provider_name_taken',
      title: `a second provider ${name} is ignored`,
      message: `an extension adds a provider ${name}, but this name is taken; the extension must use another name`,
    }))
    const unknown = Object.entries(this.kernel.config.get(ProviderEntries)).flatMap(([name, { like }]) =>
      like === undefined || this.get(like)
        ? []
        : [
            {
              ...item,
              id: `runtime.providers:like:${name}`,
              code: 'provider_unknown',
              title: `provider ${name} is based on an unknown provider`,
              message: `providers.${name}.like is ${shown(like)}; choose ${this.list()
                .map(p => p.name)
                .join(', ')}`,
            },
          ],
    )
    return [...taken, ...unknown]
  }

  /** The doctor's items: missing commands of used definitions, each once. */
  async check(): Promise<DiagnosticItem[]> {
    const uses = (await Promise.all(this.kernel.collect(ProviderUsers).map(({ entry }) => entry.read()))).flat()
    const byCommand = new Map<string, Set<string>>()
    for (const use of uses) {
      const command = use.command ?? this.get(use.provider)?.argv[0]
      // A path relative to a workspace can be checked only when the agent is started there.
      if (command === undefined || (command.includes('/') && !command.startsWith('/'))) continue
      byCommand.set(command, (byCommand.get(command) ?? new Set()).add(use.by))
    }
    const items = await this.#installedItems()
    for (const [command, users] of byCommand) {
      if (await this.executable(command)) continue
      const install = this.list().find(provider => provider.argv[0] === command)?.install
      const names = [...users].sort().slice(0, USERS_NAMED)
      const more = users.size > names.length ? ` and ${users.size - names.length} more` : ''
      items.push({
        id: `runtime.providers:${command}`,
        code: 'provider_cli_missing',
        category: 'providers',
        severity: 'warning',
        title: `${command} is not installed`,
        message: `${missingProgram(command)}; used by ${names.join(', ')}${more}`,
        data_freshness: 'live',
        ...(install ? { suggested_command: install } : {}),
        evidence: { command, used_by: names },
      })
    }
    items.push(...this.#entryItems())
    const wanted = this.kernel.config.get(DefaultProvider)
    if (wanted !== '' && !this.preferred) {
      items.push({
        id: 'runtime.providers:default',
        code: 'provider_unknown',
        category: 'providers',
        severity: 'warning',
        title: 'the default provider is unknown',
        message: `defaults.provider is ${JSON.stringify(wanted)}; choose ${this.list()
          .map(p => p.name)
          .join(', ')}`,
        data_freshness: 'live',
      })
    }
    return items
  }
}
