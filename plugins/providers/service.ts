import { mkdir } from 'node:fs/promises'
import { shown } from '../../kernel/kit/text.js'
import { iso, type PluginKernel } from '../../kernel/plugin.js'
import type { StatusProvider } from '../../schemas/daemon.js'
import type { DiagnosticItem } from '../../schemas/kernel/diagnostic.js'
import type {
  ProbeProviderReply,
  ProviderAuthStatus,
  Provider as WireProvider,
  WorkspaceProvider,
} from '../../schemas/providers.js'
import type { Processes } from '../processes/api.js'
import { type Provider, ProviderErrors, type ProvidersApi, ProviderUsers } from './api.js'
import { builtIn, catalog } from './catalog.js'
import { findExecutable, packageVersion } from './detect.js'
import { environmentOf, searchPath } from './environment.js'
import { type Probe, runProbe } from './probe.js'
import { DefaultProvider } from './settings.js'

/** Definitions that a doctor item names. */
const USERS_NAMED = 10

/** How agents of each make are started, and whether this machine can. */
export class ProvidersService implements ProvidersApi {
  readonly builtIn = builtIn
  /** The last answer about the login, by provider. */
  readonly #probes = new Map<string, Probe>()

  constructor(private readonly kernel: PluginKernel<{ processes: typeof Processes }>) {}

  list(): readonly Provider[] {
    return catalog
  }

  get(name: string): Provider | undefined {
    return catalog.find(provider => provider.name === name)
  }

  get preferred(): Provider | undefined {
    return this.get(this.kernel.config.get(DefaultProvider))
  }

  async detected(provider: Provider): Promise<boolean> {
    const [command] = provider.argv
    return command === undefined || (await this.executable(command)) !== undefined
  }

  executable(command: string): Promise<string | undefined> {
    return findExecutable(command, searchPath(this.kernel.env))
  }

  async environment(provider: Provider): Promise<Record<string, string>> {
    const isolatedHome = this.kernel.home.path('providers', provider.name)
    if (provider.homePolicy === 'isolated') await mkdir(isolatedHome, { recursive: true, mode: 0o700 })
    return environmentOf(provider, this.kernel.env, { root: this.kernel.home.root, isolatedHome })
  }

  /** Throws `provider_not_found` (404). */
  named(name: string): Provider {
    const found = this.get(name)
    if (found) return found
    throw ProviderErrors.provider_not_found(`there is no provider ${shown(name)}`, {
      details: { known: catalog.map(provider => provider.name).join(', ') },
    })
  }

  wireList(): Promise<WireProvider[]> {
    return Promise.all(catalog.map(provider => this.wire(provider)))
  }

  async wire(provider: Provider): Promise<WireProvider> {
    const [command] = provider.argv
    const executable = command === undefined ? undefined : await this.executable(command)
    const version = executable === undefined ? undefined : await packageVersion(executable)
    return {
      name: provider.name,
      display_name: provider.displayName,
      default: provider === (this.preferred ?? builtIn),
      auth_status: this.#authStatus(provider, command === undefined || executable !== undefined),
      ...(command === undefined ? {} : { command: provider.argv.join(' ') }),
      ...(provider.install ? { install_command: provider.install } : {}),
      ...(executable === undefined ? {} : { executable }),
      ...(version === undefined ? {} : { version }),
    }
  }

  /** Asks whether a provider is logged in. Throws `provider_probe_unavailable`, `provider_cli_missing` (422). */
  async probe(name: string): Promise<ProbeProviderReply> {
    const provider = this.named(name)
    const [command, ...args] = provider.loginCheck ?? []
    if (command === undefined) {
      const text = `${provider.displayName} has no command that tells whether it is logged in`
      throw ProviderErrors.provider_probe_unavailable(text, provider.login ? { next: provider.login } : {})
    }
    const executable = await this.executable(command)
    if (executable === undefined) throw ProviderErrors.provider_cli_missing(missing(command))
    const { clock, home } = this.kernel
    const env = await this.environment(provider)
    const request = { label: `login of ${provider.name}`, argv: [executable, ...args], cwd: home.root, env }
    const probe = await runProbe(clock, () => this.kernel.needs.processes.spawn({ ...request, stdio: 'pipe' }))
    this.#probes.set(provider.name, probe)
    return {
      provider: provider.name,
      auth_status: this.#authStatus(provider, true),
      probe: { duration_ms: probe.durationMs, exit_code: probe.exitCode },
    }
  }

  #authStatus(provider: Provider, installed: boolean): ProviderAuthStatus {
    const probe = this.#probes.get(provider.name)
    return {
      mode: provider.authMode,
      env_policy: provider.envPolicy,
      home_policy: provider.homePolicy,
      ...(provider.login ? { login_command: provider.login } : {}),
      ...(provider.loginCheck ? { status_command: provider.loginCheck.join(' ') } : {}),
      ...(probe ? { last_probe_at: iso(probe.at) } : {}),
      ...stateOf(provider, installed, probe),
    }
  }

  /** Member `providers` of the status: ready, or which command is missing. */
  async status(): Promise<StatusProvider[]> {
    const preferred = this.preferred ?? builtIn
    return Promise.all(
      catalog.map(async provider => ({
        name: provider.name,
        display_name: provider.displayName,
        default: provider === preferred,
        env_policy: provider.envPolicy,
        home_policy: provider.homePolicy,
        mode: provider.authMode,
        ...((await this.detected(provider))
          ? { state: 'ready' }
          : {
              state: 'missing',
              code: 'provider_cli_missing',
              message: missing(provider.argv[0] ?? ''),
              ...(provider.install ? { suggested_command: provider.install } : {}),
            }),
      })),
    )
  }

  /** Member `providers` of a workspace's detail. */
  detail(): WorkspaceProvider[] {
    return catalog.map(provider => ({
      name: provider.name,
      display_name: provider.displayName,
      auth_mode: provider.authMode,
      env_policy: provider.envPolicy,
      harness: provider.harness,
      home_policy: provider.homePolicy,
      runtime_provider: provider.runtimeProvider,
    }))
  }

  /** What can run an agent that has no command of its own; nothing can on a fresh machine. */
  async #installedItems(): Promise<DiagnosticItem[]> {
    const programs = catalog.filter(provider => provider !== builtIn)
    const there = await Promise.all(programs.map(provider => this.detected(provider)))
    const names = programs.filter((_, at) => there[at]).map(provider => provider.displayName)
    const item = { id: 'runtime.providers', category: 'providers', data_freshness: 'live' } as const
    if (names.length > 0) {
      const message = `installed: ${names.join(', ')}`
      return [{ ...item, code: 'provider_ready', severity: 'info', title: 'Agent programs', message }]
    }
    const [first] = programs
    return [
      {
        ...item,
        code: 'provider_cli_missing',
        severity: 'warning',
        title: 'no agent program is installed',
        message: `none of ${programs.map(({ argv: [command] }) => command).join(', ')} is on the PATH of the daemon; until one is, only agents with a command of their own run, as report does`,
        ...(first?.install ? { suggested_command: first.install } : {}),
      },
    ]
  }

  /** Doctor: the commands of definitions in use that are not there, each once. */
  async check(): Promise<DiagnosticItem[]> {
    const uses = (await Promise.all(this.kernel.collect(ProviderUsers).map(({ entry }) => entry.read()))).flat()
    const byCommand = new Map<string, Set<string>>()
    for (const use of uses) {
      const command = use.command ?? this.get(use.provider)?.argv[0]
      // One that is relative to a workspace can be judged only there, when it is started.
      if (command === undefined || (command.includes('/') && !command.startsWith('/'))) continue
      byCommand.set(command, (byCommand.get(command) ?? new Set()).add(use.by))
    }
    const items = await this.#installedItems()
    for (const [command, users] of byCommand) {
      if (await this.executable(command)) continue
      const install = catalog.find(provider => provider.argv[0] === command)?.install
      const names = [...users].sort().slice(0, USERS_NAMED)
      const more = users.size > names.length ? ` and ${users.size - names.length} more` : ''
      items.push({
        id: `runtime.providers:${command}`,
        code: 'provider_cli_missing',
        category: 'providers',
        severity: 'warning',
        title: `${command} is not installed`,
        message: `${missing(command)}; used by ${names.join(', ')}${more}`,
        data_freshness: 'live',
        ...(install ? { suggested_command: install } : {}),
        evidence: { command, used_by: names },
      })
    }
    const wanted = this.kernel.config.get(DefaultProvider)
    if (wanted !== '' && !this.preferred) {
      items.push({
        id: 'runtime.providers:default',
        code: 'provider_unknown',
        category: 'providers',
        severity: 'warning',
        title: 'the default provider is unknown',
        message: `defaults.provider is ${JSON.stringify(wanted)}; known are ${catalog.map(p => p.name).join(', ')}`,
        data_freshness: 'live',
      })
    }
    return items
  }
}

const missing = (command: string) => `the command ${command} is not on the PATH of the daemon`

function stateOf(
  { argv, displayName, install, login }: Provider,
  installed: boolean,
  probe: Probe | undefined,
): Pick<ProviderAuthStatus, 'state' | 'code' | 'message'> {
  if (!installed) {
    const help = install ? `; install it: ${install}` : ''
    return { state: 'missing', code: 'provider_cli_missing', message: `${missing(argv[0] ?? '')}${help}` }
  }
  if (probe === undefined || probe.exitCode === 0) return { state: 'ready' }
  const help = login ? `; log in: ${login}` : ''
  return {
    state: 'not_authenticated',
    code: 'provider_not_authenticated',
    message: `${displayName} is not logged in${help}`,
  }
}
