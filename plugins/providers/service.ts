import { mkdir } from 'node:fs/promises'
import type { PluginKernel } from '../../kernel/plugin.js'
import type { StatusProvider } from '../../schemas/daemon.js'
import type { DiagnosticItem } from '../../schemas/kernel/diagnostic.js'
import type { WorkspaceProvider } from '../../schemas/providers.js'
import { type Provider, type ProvidersApi, type ProviderUse, ProviderUsers } from './api.js'
import { builtIn, catalog } from './catalog.js'
import { findExecutable } from './detect.js'
import { environmentOf, searchPath } from './environment.js'
import { DefaultProvider } from './settings.js'

/** How agents of each make are started, and whether this machine can. */
export class ProvidersService implements ProvidersApi {
  readonly builtIn = builtIn

  constructor(private readonly kernel: PluginKernel) {}

  list(): readonly Provider[] {
    return catalog
  }

  get(name: string): Provider | undefined {
    return catalog.find(provider => provider.name === name)
  }

  get preferred(): Provider | undefined {
    return this.get(this.kernel.setting(DefaultProvider))
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

  /** Doctor: the commands of definitions in use that are not there, each once. */
  async check(): Promise<DiagnosticItem[]> {
    const uses = (await Promise.all(this.kernel.collect(ProviderUsers).map(({ entry }) => entry.read()))).flat()
    const byCommand = new Map<string, ProviderUse[]>()
    for (const use of uses) {
      const command = use.command ?? this.get(use.provider)?.argv[0]
      // One that is relative to a workspace can be judged only there, when it is started.
      if (command === undefined || (command.includes('/') && !command.startsWith('/'))) continue
      byCommand.set(command, [...(byCommand.get(command) ?? []), use])
    }
    const items: DiagnosticItem[] = []
    for (const [command, users] of byCommand) {
      if (await this.executable(command)) continue
      const install = catalog.find(provider => provider.argv[0] === command)?.install
      const names = [...new Set(users.map(use => use.by))].sort()
      items.push({
        id: `runtime.providers:${command}`,
        code: 'provider_cli_missing',
        category: 'providers',
        severity: 'warning',
        title: `${command} is not installed`,
        message: `${missing(command)}; used by ${names.join(', ')}`,
        data_freshness: 'live',
        ...(install ? { suggested_command: install } : {}),
        evidence: { command, used_by: names },
      })
    }
    const wanted = this.kernel.setting(DefaultProvider)
    if (wanted !== '' && !this.preferred) {
      items.push({
        id: 'runtime.providers:default',
        code: 'provider_unknown',
        category: 'providers',
        severity: 'warning',
        title: 'the default provider is unknown',
        message: `defaults.provider is ${JSON.stringify(wanted)}; known are ${catalog.map(p => p.name).join(', ')}`,
        data_freshness: 'live',
        suggested_command: 'svc config edit',
      })
    }
    return items
  }
}

const missing = (command: string) => `the command ${command} is not on the PATH of the daemon`
