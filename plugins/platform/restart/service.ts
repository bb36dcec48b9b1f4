import { aborted } from '../../../kernel/kit/backoff.js'
import { Serial } from '../../../kernel/kit/serial.js'
import { clip } from '../../../kernel/kit/text.js'
import { isFull } from '../../../kernel/platform.js'
import { type Actor, Fault, iso, KernelErrors, messageOf } from '../../../kernel/plugin.js'
import type { RestartOperation, RestartTriggered } from '../../../schemas/daemon/restart.js'
import { type Helper, type Relauncher, Relaunchers, type RestartApi, RestartErrors, RestartRequested } from './api.js'
import type { K } from './needs.js'
import { Operations, type StoredOperation } from './operations.js'
import { isOpen } from './states.js'

const EMBEDDED = 'the program in which this daemon is embedded starts and stops it'

/** Restarts from the point of view of both daemons: the one that ends and its successor. */
export class RestartService implements RestartApi {
  readonly #operations: Operations
  /** Serialized, so that concurrent requests share one operation. */
  readonly #asking = new Serial()

  constructor(private readonly kernel: K) {
    this.#operations = new Operations(kernel.home.root)
  }

  get refusal(): string | undefined {
    const relauncher = this.kernel.collect(Relaunchers)[0]?.entry
    return relauncher ? relauncher.refusal : EMBEDDED
  }

  /** This daemon holds the lock of the home, so a predecessor's operation has reached its start. */
  start(): void {
    this.#follow('starting')
  }

  /** A predecessor's operation has succeeded when this daemon serves. */
  async finish(signal: AbortSignal): Promise<void> {
    const ended = aborted(signal)
    await Promise.race([ended, this.kernel.collect(Relaunchers)[0]?.entry.ready])
    if (signal.aborted) return
    this.#follow('ready')
    await ended
  }

  /** Begins a restart, or joins the current one. @throws Fault `restart_unsupported`, `restart_failed`, `disk_full` */
  restart(actor: Actor): Promise<RestartTriggered> {
    return this.#asking.run(async () => {
      this.#follow('ready')
      const operation = this.#operations.open() ?? (await this.#begin(actor))
      const { operation_id, status, active_session_count } = operation
      return { operation_id, status, active_session_count, status_url: urlOf(operation_id) }
    })
  }

  /** @throws Fault `restart_not_found` */
  operation(id: string): RestartOperation {
    this.#follow('ready')
    const operation = this.#operations.read(id)
    if (!operation) throw RestartErrors.restart_not_found(`there is no restart ${clip(id, 80)}`)
    const { helper_pid: _, external: __, ...reply } = operation
    return reply
  }

  async #begin(actor: Actor): Promise<StoredOperation> {
    const relauncher = this.#relauncher()
    const { kernel } = this
    const { pid, startedAt, listeners } = kernel.needs.host
    const id = kernel.ids.id('rst')
    const socket = listeners().find(at => at.door === 'socket')
    const makeOperation = (more: Partial<StoredOperation>): StoredOperation => {
      const now = iso(kernel.clock.now())
      const operation: StoredOperation = {
        operation_id: id,
        status: 'pending',
        status_url: urlOf(id),
        active_session_count: kernel.needs.sessions.current?.unstopped().length ?? 0,
        old_pid: pid,
        old_started_at: iso(startedAt),
        old_socket_path: socket?.path ?? '',
        started_at: now,
        updated_at: now,
        ...more,
      }
      this.#operations.write(operation)
      return operation
    }
    let helper: Helper | undefined
    try {
      this.#operations.prune(kernel.clock.now())
      const problem = await this.#configProblem()
      if (problem !== undefined) {
        const completed_at = iso(kernel.clock.now())
        return makeOperation({ status: 'failed', completed_at, failure_reason: `invalid configuration: ${problem}` })
      }
      // The helper starts first: then every visible operation is carried out, even if this process ends.
      helper = await relauncher.prepare(id)
      const operation = makeOperation(relauncher.external ? { external: true } : { helper_pid: helper.pid })
      await kernel.db.tx(t =>
        kernel.needs.events.emit(t, RestartRequested, { operation_id: id, pid }, { actor, subject: id }),
      )
      helper.release()
      void this.#stop(id, relauncher)
      return operation
    } catch (error) {
      // The helper finds no operation, or a failed one, and ends.
      helper?.release()
      this.#operations.advance(id, 'failed', iso(kernel.clock.now()), { failure_reason: messageOf(error) })
      if (error instanceof Fault) throw error
      if (isFull(error)) throw KernelErrors.disk_full(undefined, { cause: error })
      throw RestartErrors.restart_failed(`the restart could not begin: ${messageOf(error)}; the daemon keeps running`)
    }
  }

  /** Why the current file would prevent the next start. */
  async #configProblem(): Promise<string | undefined> {
    const configuration = this.kernel.needs.configuration.current
    await configuration?.reload()
    return configuration?.state().problem
  }

  /** The reply is sent first: a shutdown waits for requests, but a closed door looks like a crash. */
  async #stop(id: string, relauncher: Relauncher): Promise<void> {
    await this.kernel.clock.sleep(50)
    try {
      this.#operations.advance(id, 'stopping', iso(this.kernel.clock.now()))
    } finally {
      relauncher.stop()
    }
  }

  /** @throws Fault `restart_unsupported` */
  #relauncher(): Relauncher {
    const { refusal } = this
    const relauncher = this.kernel.collect(Relaunchers)[0]?.entry
    if (!relauncher || refusal !== undefined)
      throw RestartErrors.restart_unsupported(`this daemon cannot restart itself: ${refusal}`)
    return relauncher
  }

  /**
   * Advances every open operation of an earlier daemon: this daemon is the new one, regardless of how it was started. Repeated,
   * because a helper that lost its daemon may write a last status later.
   */
  #follow(to: 'starting' | 'ready'): void {
    const { host } = this.kernel.needs
    for (const { operation_id: id, status, old_pid, old_started_at } of this.#operations.list()) {
      if (!isOpen(status) || (old_pid === host.pid && old_started_at === iso(host.startedAt))) continue
      try {
        this.#operations.advance(id, to, iso(this.kernel.clock.now()), { new_pid: host.pid })
      } catch (error) {
        this.kernel.log.warn(`the restart ${id} cannot be recorded: ${messageOf(error)}`)
      }
    }
  }
}

const urlOf = (id: string): string => `/api/settings/actions/restart/${id}`
