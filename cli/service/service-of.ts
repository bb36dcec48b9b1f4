import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { KernelSettings } from '../../kernel/platform.js'
import {
  readService,
  type ServiceDefinition,
  type ServiceOwner,
  servicePlaces,
  serviceText,
} from '../../plugins/desk/daemon/installed-service.js'
import { ServiceSettings } from '../../plugins/desk/daemon/service-settings.js'
import { TcpSettings } from '../../plugins/platform/tcp/settings.js'
import { loadCheck } from '../daemon/load-daemon.js'
import { CliFault, exitCodes } from '../fault.js'
import type { LocalContext } from '../local.js'
import { textOf } from '../setup/settings-file.js'
import { ownerOf, programOf, type ServiceFacts, servicePath } from './facts.js'

type Context = Pick<LocalContext, 'io' | 'options' | 'home'>

/** The supported managers, by the value of `--manager`. */
export const managers = ['systemd', 'launchd'] as const

/** The owner and the manager of the service. @throws CliFault `service_unsupported`, `user_not_found` */
export function serviceOwner({ io, options }: Context): ServiceOwner {
  const owner = ownerOf(io.env, textOption(options.user))
  const manager = textOption(options.manager)
  if (manager !== undefined && !managers.some(name => name === manager)) {
    throw new CliFault('usage', `--manager is ${managers.join(' or ')}, not ${JSON.stringify(manager)}`, {
      exit: exitCodes.usage,
    })
  }
  const platform = manager === 'launchd' ? 'darwin' : manager === 'systemd' ? 'linux' : owner.platform
  if (platform !== 'linux' && platform !== 'darwin') {
    throw new CliFault(
      'service_unsupported',
      `there is no service for ${platform}: systemd and launchd are supported`,
      {
        next: 'svc daemon start',
      },
    )
  }
  return { ...owner, platform }
}

const textOption = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** The place of this call's service. */
export function serviceOf(owner: ServiceOwner, { options }: Context): ServiceDefinition {
  const [own, system] = servicePlaces(owner)
  if (options.system === true && !system) {
    throw new CliFault('usage', '--system is for systemd; an agent of launchd belongs to its user', {
      exit: exitCodes.usage,
    })
  }
  return (options.system === true ? system : own) as ServiceDefinition
}

/** An installed service with the content of its file. */
export interface Installed {
  readonly service: ServiceDefinition
  readonly text: string
  readonly written: ReturnType<typeof readService>
}

export function readInstalled(service: ServiceDefinition): Installed | undefined {
  const text = serviceText(service.file)
  return text === undefined ? undefined : { service, text, written: readService(text, service.supervisor) }
}

/** All installed services of this home. */
export const installedServices = (owner: ServiceOwner): Installed[] =>
  servicePlaces(owner).flatMap(service => readInstalled(service) ?? [])

/** The facts captured for the service. @throws CliFault `config_invalid` when no daemon would start with the configuration */
export async function serviceFacts(owner: ServiceOwner, { io, home: own }: Context): Promise<ServiceFacts> {
  const { home } = owner
  const file = join(home, 'config.json')
  const { checkConfig } = await loadCheck(io.root, own)
  const { said } = await checkConfig(existsSync(file) ? textOf(home) : '', file).catch((error: Error) => {
    throw new CliFault('config_invalid', error.message, { exit: exitCodes.invalid, next: 'svc config check' })
  })
  const value = <T>(setting: { readonly path: string; readonly default: T }) =>
    (said.get(setting.path)?.value ?? setting.default) as T
  const argv = programOf(io, owner.platform === 'darwin' ? 'launchd' : 'systemd')
  const host = value(TcpSettings.host)
  const address = host === 'localhost' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return {
    ...owner,
    argv,
    path: servicePath(io.env, argv[0] ?? ''),
    stopWait: value(ServiceSettings.stopWait),
    listen: {
      socket: value(KernelSettings.socket) || join(home, 'daemon.sock'),
      ...(value(TcpSettings.enabled) !== false && { tcp: `${address}:${value(TcpSettings.port)}` }),
    },
  }
}
