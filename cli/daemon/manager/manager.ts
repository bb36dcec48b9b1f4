import { messageOf } from '../../../kernel/contract/errors.js'
import type { InheritedSockets } from '../../../kernel/index.js'
import { notifier, type Send } from './notify.js'
import { inheritedSockets } from './sockets.js'

/** Variables by which a service manager speaks to the process that it started, and to no descendant of that. */
const OWN = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID', 'LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES'] as const

type Env = Record<string, string | undefined>

/**
 * The service manager that started this process, such as systemd: it hears when the daemon serves, loads its configuration anew, stops,
 * and that its event loop turns. A manager that does not listen is no reason not to run.
 */
export class ServiceManager {
  #timer: NodeJS.Timeout | undefined
  #failed = false

  constructor(
    private readonly send: Send | undefined,
    /** Milliseconds within which the manager wants to hear that the process lives. */
    private readonly watchdogMs: number | undefined,
    readonly inherited: InheritedSockets | undefined,
    private readonly warn: (text: string) => void,
  ) {}

  /** The daemon serves. From here on its own event loop says that it lives: a loop that is held says nothing. */
  ready(pid: number): void {
    this.#tell(`READY=1\nMAINPID=${pid}\nSTATUS=serving`)
    if (this.watchdogMs === undefined || !this.send || this.#timer) return
    this.#tell('WATCHDOG=1')
    this.#timer = setInterval(() => this.#tell('WATCHDOG=1'), this.watchdogMs / 3)
    this.#timer.unref()
  }

  /** Says so around what loads the configuration anew. */
  async reloading(load: () => Promise<void>): Promise<void> {
    // The clock of the machine, which the manager compares with its own.
    this.#tell(`RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`)
    try {
      await load()
    } finally {
      this.#tell('READY=1\nSTATUS=serving')
    }
  }

  /** The daemon begins to stop, and says why; its loop goes on to turn until it has. */
  stopping(why: string): void {
    this.#tell(`STOPPING=1\nSTATUS=${why.replaceAll('\n', ' ')}`)
  }

  /** The stop takes longer than the manager gives it: so many milliseconds from now. */
  extend(ms: number, why: string): void {
    this.#tell(`EXTEND_TIMEOUT_USEC=${ms * 1000}\nSTATUS=${why.replaceAll('\n', ' ')}`)
  }

  #tell(text: string): void {
    try {
      this.send?.(text)
      this.#failed = false
    } catch (error) {
      // Once: it may be told of every few seconds.
      if (!this.#failed) this.warn(`the service manager is not told: ${messageOf(error)}`)
      this.#failed = true
    }
  }
}

/** What a start found out about its manager, before there is a log. */
export interface ManagedStart {
  readonly manager: ServiceManager
  /** Where what it has to say goes from now on. */
  logTo(warn: (text: string) => void): void
}

/**
 * Takes what a service manager put into the environment out of it, so that no process which the daemon starts can speak in its name.
 * Undefined where none did. Not on other systems than Linux, whose managers have other ways.
 * @param self pid of this process
 * @throws Fault `listen_fd_wrong`
 */
export function takeManager(env: Env, self: number): ManagedStart | undefined {
  const given = Object.fromEntries(OWN.map(name => [name, env[name]])) as Partial<Record<(typeof OWN)[number], string>>
  for (const name of OWN) delete env[name]
  if (process.platform !== 'linux') return undefined
  const isOurs = given.WATCHDOG_PID === undefined || given.WATCHDOG_PID === String(self)
  const usec = isOurs ? Number(given.WATCHDOG_USEC) : 0
  const inherited = inheritedSockets(given, self)
  if (!given.NOTIFY_SOCKET && !inherited) return undefined
  const early: string[] = []
  let warn = (text: string): void => void early.push(text)
  let send: Send | undefined
  try {
    send = given.NOTIFY_SOCKET ? notifier(given.NOTIFY_SOCKET) : undefined
  } catch (error) {
    warn(`the service manager cannot be told anything: ${messageOf(error)}`)
  }
  return {
    manager: new ServiceManager(send, usec > 0 ? usec / 1000 : undefined, inherited, text => warn(text)),
    logTo(to) {
      warn = to
      for (const text of early.splice(0)) to(text)
    },
  }
}
