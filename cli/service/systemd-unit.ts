import { marked } from '../../plugins/desk/daemon/installed-service.js'
import { serviceExits } from '../daemon/daemon-arguments.js'
import { CliFault } from '../fault.js'
import type { ServiceFacts } from './facts.js'

/** Starts within so many seconds before the manager gives up: more than the watchdog of the daemon itself allows. */
const START_LIMIT = { interval: 600, burst: 20 }
const RESTART_SECONDS = 2
/** A migration of a large home takes its time. */
const START_SECONDS = 300
const WATCHDOG_SECONDS = 60
/** What a shutdown takes at most, behind the wait for turns. */
const SHUTDOWN_SECONDS = 40

/**
 * What the daemon and everything that it starts does without, under each manager; docs/service.md says what is left out and why. Only
 * filters of system calls: a manager of a user may not do more, and a mount or a namespace of the unit would keep sandboxes from theirs.
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

/** What only the manager of the machine can do. */
const HARDENED_SYSTEM = ['ProtectSystem=full', 'ProtectKernelModules=yes', 'ProtectClock=yes', 'PrivateDevices=yes']

/** Root without capabilities may not map itself into the namespace of a sandbox. */
const HARDENED_USER = ['CapabilityBoundingSet=', 'AmbientCapabilities=']

export interface UnitOptions {
  readonly system: boolean
  /** The unit that listens in its place, if any does. */
  readonly socket?: string | undefined
}

/** `svc.service`: the daemon as a unit of the user's manager or of the machine's. */
export function systemdUnit(facts: ServiceFacts, { system, socket }: UnitOptions): string {
  const { argv, home, path, stopWait, user } = facts
  const [node = '', ...args] = argv
  return marked(
    `${[
      '# @mark',
      '# Changes belong into a drop-in, which an update leaves alone: systemctl edit',
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
      // The colon: nothing of it is a variable.
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

/** `svc.socket`: listens from the start of the machine on and starts the daemon with the first connection. */
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

/** A value of a unit, in which nothing is a specifier. @throws CliFault `service_path_unsupported` */
function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none can stand in a line of a unit
  if (/[\u0000-\u001f\u007f]/.test(text) || text !== text.trim())
    throw new CliFault('service_path_unsupported', `${JSON.stringify(text)} cannot stand in a unit`, {
      next: 'use a home whose path has no control characters: SVC_HOME=<folder> svc service install',
    })
  return text.replaceAll('%', '%%')
}

const quoted = (text: string): string => `"${plain(text).replace(/["\\]/g, '\\$&')}"`
