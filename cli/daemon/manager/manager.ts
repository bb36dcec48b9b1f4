import { messageOf } from '../../../kernel/contract/errors.js'
import type { InheritedSockets } from '../../../kernel/index.js'
import { notifier, type Send } from './notify.js'
import { inheritedSockets } from './sockets.js'

/** Variables of a service manager for the process that it started, which descendants must not inherit. */
const OWN = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID', 'LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES'] as const

type Env = Record<string, string | undefined>

/**
 * The service manager that started this process, such as systemd. It is notified of readiness, reloads, stops and a live event
 * loop. A manager that does not respond does not prevent the daemon from running.
 */
export class ServiceManager {
  #timer: NodeJS.Timeout | undefined
  #failed = false

  constructor(
    private readonly send: Send | undefined,
    /** Milliseconds within which the manager expects a sign of life. */
    private readonly watchdogMs: number | undefined,
    readonly inherited: InheritedSockets | undefined,
    private readonly warn: (text: string) => void,
  ) {}

  /** Reports readiness. From now on the event loop sends signs of life, so that a blocked loop sends none. */
  ready(pid: number): void {
    this.#tell(`READY=1\nMAINPID=${pid}\nSTATUS=serving`)
    if (this.watchdogMs === undefined || !this.send || this.#timer) return
    this.#tell('WATCHDOG=1')
    this.#timer = setInterval(() => this.#tell('WATCHDOG=1'), this.watchdogMs / 3)
    this.#timer.unref()
  }

  /** Reports a reload around `load`. */
  async reloading(load: () => Promise<void>): Promise<void> {
    // The manager compares this with its own monotonic clock.
    this.#tell(`RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`)
    try {
      await load()
    } finally {
      this.#tell('READY=1\nSTATUS=serving')
    }
  }

  /** Reports the begin of a stop with its reason; the loop keeps running until the end. */
  stopping(why: string): void {
    this.#tell(`STOPPING=1\nSTATUS=${why.replaceAll('\n', ' ')}`)
  }

  /** Extends the stop timeout of the manager by this number of milliseconds from now. */
  extend(ms: number, why: string): void {
    this.#tell(`EXTEND_TIMEOUT_USEC=${ms * 1000}\nSTATUS=${why.replaceAll('\n', ' ')}`)
  }

  #tell(text: string): void {
    try {
      this.send?.(text)
      this.#failed = false
    } catch (error) {
      // Logged once, because notifications may fail every few seconds.
      if (!this.#failed) this.warn(`the service manager could not be notified: ${messageOf(error)}`)
      this.#failed = true
    }
  }
}

/** The manager of a start, before there is a log. */
export interface ManagedStart {
  readonly manager: ServiceManager
  /** Sends warnings to the log from now on. */
  logTo(warn: (text: string) => void): void
}

/**
 * Removes the variables of a service manager from the environment, so that no child process can act in its name. Undefined without
 * a manager, and on systems other than Linux, whose managers use other mechanisms.
 * @param self pid of this process
 * @throws Fault `listen_fd_wrong`
 */
export function takeManager(env: Env, self: number): ManagedStart | undefined {
  const variables = Object.fromEntries(OWN.map(name => [name, env[name]])) as Partial<
    Record<(typeof OWN)[number], string>
  >
  for (const name of OWN) delete env[name]
  if (process.platform !== 'linux') return undefined
  const isOurs = variables.WATCHDOG_PID === undefined || variables.WATCHDOG_PID === String(self)
  const usec = isOurs ? Number(variables.WATCHDOG_USEC) : 0
  const inherited = inheritedSockets(variables, self)
  if (!variables.NOTIFY_SOCKET && !inherited) return undefined
  const early: string[] = []
  let warn = (text: string): void => void early.push(text)
  let send: Send | undefined
  try {
    send = variables.NOTIFY_SOCKET ? notifier(variables.NOTIFY_SOCKET) : undefined
  } catch (error) {
    warn(`the service manager cannot be notified: ${messageOf(error)}`)
  }
  return {
    manager: new ServiceManager(send, usec > 0 ? usec / 1000 : undefined, inherited, text => warn(text)),
    logTo(to) {
      warn = to
      for (const text of early.splice(0)) to(text)
    },
  }
}
