import { serviceProblems } from '../../plugins/desk/daemon/installed-service.js'
import { runningDaemon } from '../address.js'
import { exitCodes } from '../fault.js'
import type { LocalContext } from '../local.js'
import { isLingering, lingerCommand } from './linger.js'
import { call, systemctl } from './manager-call.js'
import { type Installed, installedServices, serviceOwner } from './service-of.js'

/** Properties of systemctl, by their names there. */
const PROPERTIES = ['ActiveState', 'SubState', 'UnitFileState', 'MainPID', 'NRestarts', 'Result', 'NeedDaemonReload']

/** The status of one service. */
interface ServiceStatus {
  readonly service: string
  readonly manager: string
  readonly file: string
  /** `written`: unchanged since svc wrote it. */
  readonly unit: 'written' | 'edited' | 'foreign'
  /** State according to the manager; `unknown` when it is unreachable. */
  readonly state: string
  readonly enabled?: string
  readonly pid?: number
  readonly restarts?: number
  readonly node: string
  readonly linger?: boolean
  readonly problems: readonly { readonly code: string; readonly message: string; readonly next: string }[]
}

/**
 * `service status`: installed services of this home, their state in the manager, and their problems. Exit code 1 when there is a
 * problem.
 */
export async function serviceStatus(context: LocalContext): Promise<number> {
  const { out } = context
  const owner = serviceOwner(context)
  const { home } = owner
  const daemon = await runningDaemon(home)
  const found = installedServices(owner)
  const services = await Promise.all(found.map(installed => statusOf(installed, home, owner.user, daemon, context)))
  if (out.json) out.value({ home, daemon_pid: daemon ?? null, services })
  else if (services.length === 0) out.line(`no service is installed for ${home}\ninstall one: svc service install`)
  else for (const service of services) show(service, context)
  if (services.length === 0) return exitCodes.notFound
  // A service that stops with the session of its user may be intended.
  const isWrong = ({ code }: { readonly code: string }) => code !== 'service_no_linger'
  return services.some(({ problems }) => problems.some(isWrong)) ? exitCodes.failed : exitCodes.done
}

async function statusOf(
  { service, written }: Installed,
  home: string,
  user: string,
  daemon: number | undefined,
  { io }: LocalContext,
): Promise<ServiceStatus> {
  const about = service.supervisor === 'launchd' ? undefined : await propertiesOf(service, io)
  const linger = service.supervisor === 'systemd-user' ? isLingering(user) : undefined
  const pid = Number(about?.MainPID ?? 0)
  const problems: ServiceStatus['problems'][number][] = serviceProblems(written, home).map(problem => ({
    ...problem,
    next: 'svc service install',
  }))
  const problem = (code: string, message: string, next: string) => problems.push({ code, message, next })
  const reload = systemctl(service, 'daemon-reload').join(' ')
  const start = systemctl(service, 'start', service.name).join(' ')
  if (about?.NeedDaemonReload === 'yes')
    problem('service_not_reloaded', 'the manager has not read the changed unit', reload)
  if (about?.ActiveState === 'failed')
    problem('service_failed', `the service failed (${about.Result}) and is not started again`, `svc logs`)
  if (about?.UnitFileState === 'disabled') {
    const enable = systemctl(service, 'enable', service.name).join(' ')
    problem('service_disabled', 'the service does not start by itself', enable)
  }
  if (about && daemon !== undefined && pid !== daemon) {
    const message = `the daemon of this home (pid ${daemon}) was not started by the service`
    problem('service_bypassed', message, 'svc daemon stop'.concat(` && ${start}`))
  }
  if (linger === false) problem('service_no_linger', `the service stops when ${user} logs out`, lingerCommand(user))
  return {
    service: service.name,
    manager: service.supervisor,
    file: service.file,
    unit: written.mark === 'ours' ? 'written' : written.mark,
    state: about ? `${about.ActiveState} (${about.SubState})` : 'unknown',
    ...(about?.UnitFileState && { enabled: about.UnitFileState }),
    ...(pid > 0 && { pid }),
    ...(about?.NRestarts !== undefined && { restarts: Number(about.NRestarts) }),
    node: written.argv[0] ?? '',
    ...(linger !== undefined && { linger }),
    problems,
  }
}

async function propertiesOf(service: Installed['service'], io: LocalContext['io']) {
  const { ok, stdout } = await call(io, systemctl(service, 'show', `--property=${PROPERTIES.join(',')}`, service.name))
  if (!ok) return undefined
  const pairs = stdout.split('\n').map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])
  return Object.fromEntries(pairs) as Partial<Record<string, string>>
}

function show(service: ServiceStatus, { out }: LocalContext): void {
  out.fields(service, [
    { header: 'Service', path: 'service' },
    { header: 'Manager', path: 'manager' },
    { header: 'State', path: 'state' },
    { header: 'Enabled', path: 'enabled' },
    { header: 'PID', path: 'pid' },
    { header: 'Restarts', path: 'restarts' },
    { header: 'File', path: 'file' },
    { header: 'Unit', path: 'unit' },
    { header: 'Node', path: 'node' },
    { header: 'Linger', path: 'linger' },
  ])
  if (service.problems.length > 0) out.line('')
  for (const { message, next } of service.problems) {
    out.line(`${out.color('yellow', '!')} ${message}`)
    out.line(`    ${next}`)
  }
}
