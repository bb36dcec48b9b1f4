import { marked } from '../../plugins/desk/daemon/installed-service.js'
import { serviceExits } from '../daemon/daemon-arguments.js'
import { CliFault } from '../fault.js'
import type { ServiceFacts } from './facts.js'

/** Starts within this interval before the manager gives up: more than the watchdog of the daemon allows. */
const START_LIMIT = { interval: 600, burst: 20 }
const RESTART_SECONDS = 2
/** Includes time for the migration of a large home. */
const START_SECONDS = 300
const WATCHDOG_SECONDS = 60
/** Maximum time of a shutdown after the wait for turns. */
const SHUTDOWN_SECONDS = 40

/**
 * Hardening of the daemon and its child processes under each manager; docs/service.md lists what is omitted and why. Only system
 * call filters: a user manager cannot do more, and mounts or namespaces of the unit would prevent those of sandboxes.
 */
const HARDENED = [
  'NoNewPrivileges=yes',
  'LockPersonality=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
  'SystemCallArchitectures=native',
  'SystemCallFilter=~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap',
  'SystemCallErrorNumber=EPERM',
]

/** Hardening that only the system manager supports. */
const HARDENED_SYSTEM = ['ProtectSystem=full', 'ProtectKernelModules=yes', 'ProtectClock=yes', 'PrivateDevices=yes']

/** Without capabilities, root cannot map itself into the namespace of a sandbox. */
const HARDENED_USER = ['CapabilityBoundingSet=', 'AmbientCapabilities=']

export interface UnitOptions {
  readonly system: boolean
  /** The socket unit of the service, if any. */
  readonly socket?: string | undefined
}

/** `svc.service`: the daemon as a unit of the user manager or of the system manager. */
export function systemdUnit(facts: ServiceFacts, { system, socket }: UnitOptions): string {
  const { argv, home, path, stopWait, user } = facts
  const [node = '', ...args] = argv
  return marked(
    `${[
      '# @mark',
      '# Make changes in a drop-in, which an update leaves alone: systemctl edit',
      '[Unit]',
      `Description=svc daemon of ${plain(home)}`,
      ...(system ? ['After=network.target'] : []),
      ...(socket === undefined ? [] : [`Requires=${socket}`, `After=${socket}`]),
      ...(system ? [`RequiresMountsFor=${quoted(home)}`] : []),
      `StartLimitIntervalSec=${START_LIMIT.interval}`,
      `StartLimitBurst=${START_LIMIT.burst}`,
      '',
      '[Service]',
      'Type=notify',
      'NotifyAccess=main',
      // The colon disables the expansion of variables.
      `ExecStart=:${[node, ...args].map(quoted).join(' ')}`,
      'ExecReload=kill -HUP $MAINPID',
      ...(system ? [`User=${plain(user)}`] : []),
      'WorkingDirectory=~',
      `Environment=${quoted(`SVC_HOME=${home}`)}`,
      `Environment=${quoted(`PATH=${path}`)}`,
      'Restart=on-failure',
      `RestartSec=${RESTART_SECONDS}`,
      `SuccessExitStatus=${serviceExits.restart}`,
      `RestartForceExitStatus=${serviceExits.restart}`,
      `RestartPreventExitStatus=${serviceExits.alreadyRunning} ${serviceExits.hopeless}`,
      `WatchdogSec=${WATCHDOG_SECONDS}`,
      `TimeoutStartSec=${START_SECONDS}`,
      `TimeoutStopSec=${stopWait + SHUTDOWN_SECONDS}`,
      'KillMode=mixed',
      'Delegate=yes',
      'OOMPolicy=continue',
      ...HARDENED,
      ...(system ? HARDENED_SYSTEM : []),
      ...(system && user !== 'root' ? HARDENED_USER : []),
      '',
      '[Install]',
      `WantedBy=${system ? 'multi-user' : 'default'}.target`,
      ...(socket === undefined ? [] : [`Also=${socket}`]),
    ].join('\n')}\n`,
  )
}

/** `svc.socket`: listens from the boot on and starts the daemon with the first connection. */
export function socketUnit({ home, listen, user }: ServiceFacts, system: boolean): string {
  return marked(
    `${[
      '# @mark',
      '[Unit]',
      `Description=socket of the svc daemon of ${plain(home)}`,
      '',
      '[Socket]',
      `ListenStream=${plain(listen.socket)}`,
      ...(listen.tcp === undefined ? [] : [`ListenStream=${listen.tcp}`]),
      'SocketMode=0600',
      'DirectoryMode=0700',
      ...(system ? [`SocketUser=${plain(user)}`] : []),
      '',
      '[Install]',
      'WantedBy=sockets.target',
    ].join('\n')}\n`,
  )
}

/** A unit value with escaped specifiers. @throws CliFault `service_path_unsupported` */
function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none can stand in a line of a unit
  if (/[\u0000-\u001f\u007f]/.test(text) || text !== text.trim())
    throw new CliFault('service_path_unsupported', `${JSON.stringify(text)} is not allowed in a unit file`, {
      next: 'use a home whose path has no control characters: SVC_HOME=<folder> svc service install',
    })
  return text.replaceAll('%', '%%')
}

const quoted = (text: string): string => `"${plain(text).replace(/["\\]/g, '\\$&')}"`
