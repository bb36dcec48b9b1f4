import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync } from 'node:fs'
import { version } from '../../kernel/index.js'
import { definePlugin, type Plugin, surfaceOf } from '../../kernel/plugin.js'
import { type Helper, type Relauncher, Relaunchers, RestartErrors } from '../../plugins/platform/restart/api.js'
import { Operations } from '../../plugins/platform/restart/operations.js'
import { isOpen } from '../../plugins/platform/restart/states.js'
import { RESTART } from './daemon-arguments.js'
import { logPath, openLog } from './log-file.js'

/** Time limit for the start of a helper, and the number of attempts. */
const HELPER_MS = 10_000
const MAX_HELPERS = 3

export interface RelaunchOptions {
  readonly home: string
  /** Node arguments that start the next daemon; absent in the foreground, where a person starts it. */
  readonly successor: readonly string[] | undefined
  /** The service manager starts the next daemon after a restart exit. */
  readonly service?: boolean | undefined
  /** Begins the shutdown of this daemon. */
  readonly stop: () => void
}

/**
 * Restarts the daemon. A separate helper process starts the next daemon, which waits for the lock of this one. This process
 * monitors the helper until it ends, and the helper monitors the next daemon, so that a kill of any of the three is noticed.
 */
export class Relaunching implements Relauncher {
  readonly refusal?: string
  readonly external?: true
  readonly ready: Promise<void>
  /** Reports that this daemon serves. */
  serves: () => void = () => {}
  #operation: string | undefined
  #helper: ChildProcess | undefined

  constructor(private readonly options: RelaunchOptions) {
    this.ready = new Promise(resolve => {
      this.serves = resolve
    })
    if (options.service) this.external = true
    else if (!options.successor) this.refusal = 'it runs in the foreground; restart it where it was started'
  }

  stop(): void {
    this.options.stop()
  }

  async prepare(operation: string): Promise<Helper> {
    if (this.external) return { pid: process.pid, release: () => {} }
    const helper = await this.#spawn(operation)
    this.#operation = operation
    return { pid: helper.pid as number, release: () => release(helper) }
  }

  /**
   * The last action of this process: it restarts a killed helper. This happens after the shutdown, which ends child processes and
   * could end a new helper as one of them.
   */
  async handOver(): Promise<void> {
    const id = this.#operation
    if (id === undefined) return
    const operations = new Operations(this.options.home)
    let why = 'its helper was killed'
    for (let n = 1; n <= MAX_HELPERS; n++) {
      const status = operations.read(id)?.status
      if (status === undefined || !isOpen(status) || isRunning(this.#helper)) return
      try {
        release(await this.#spawn(id))
      } catch (error) {
        why = `its helper was killed and another did not start: ${(error as Error).message}`
      }
    }
    if (isRunning(this.#helper)) return
    operations.advance(id, 'failed', new Date().toISOString(), { failure_reason: why })
  }

  /** Resolves when the helper runs. */
  async #spawn(operation: string): Promise<ChildProcess> {
    const { home, successor = [] } = this.options
    const file = openLog(logPath(home))
    try {
      const child = spawn(process.execPath, [...successor, RESTART, operation], {
        cwd: home,
        detached: true,
        stdio: ['ignore', file, file, 'ipc'],
      })
      await runs(child)
      child.unref()
      this.#helper = child
      return child
    } finally {
      closeSync(file)
    }
  }
}

function runs(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`the helper did not run within ${HELPER_MS / 1000} s`))
    }, HELPER_MS)
    const ended = (what: string) => {
      clearTimeout(timer)
      reject(new Error(what))
    }
    child.once('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      // An upgrade of Node may remove the release that runs this daemon.
      reject(error.code === 'ENOENT' && !existsSync(process.execPath) ? nodeGone() : error)
    })
    child.once('exit', (code, signal) => ended(`the helper ended with ${signal ?? `code ${code}`}`))
    child.once('message', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

const nodeGone = () =>
  RestartErrors.restart_failed(
    `the restart could not begin: ${process.execPath}, with which this daemon was started, no longer exists; the daemon keeps running`,
    { next: 'svc daemon stop && svc daemon start' },
  )

/** Closes the channel for which the helper waits; the end of this process closes it too. */
function release(helper: ChildProcess): void {
  if (helper.connected) helper.disconnect()
}

const isRunning = (child: ChildProcess | undefined): boolean =>
  child !== undefined && child.exitCode === null && child.signalCode === null

const { contribute } = surfaceOf<unknown>()

/** The plugin with the relauncher, which belongs to the daemon program and not to the embeddable kernel. */
export function relaunchPlugin(relaunching: Relauncher): Plugin {
  const registries = [contribute(Relaunchers, () => [relaunching])]
  return definePlugin({ name: 'relaunch', version }).surface({ registries })
}
