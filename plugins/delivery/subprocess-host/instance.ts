import { clip } from '../../../kernel/kit/text.js'
import { messageOf, onBehalfOf, turn, within } from '../../../kernel/plugin.js'
import { DEFAULT_PROFILE, spawnConfined } from '../../access/sandboxes/api.js'
import type { ProcessHandle } from '../../platform/processes/api.js'
import { ExtensionErrors, type Grants, type InstalledExtension, type LogRing } from '../extensions/api.js'
import { caller, publisher, sourceOf } from './actors.js'
import type { RuntimeContext } from './api.js'
import { Connection } from './connection.js'
import { launchOf, secretOf } from './environment.js'
import { checkReply, greeting, type Handshake, type Times } from './handshake.js'
import type { HostApi } from './host-api.js'
import { mebibytes, memoryOf } from './memory.js'
import type { Provisions } from './provisions.js'
import { rpcError } from './rpc-error.js'
import type { ProcessHost } from './runtime.js'
import { SubprocessSettings } from './settings.js'
import { Snapshots } from './snapshots.js'

/** Milliseconds for the last output of a process to arrive. */
const DRAIN_MS = 500
/** Milliseconds between two looks at the memory of a process: what one takes in that time goes beyond the limit. */
const MEMORY_INTERVAL_MS = 2500
const FLOODS = 'it floods its standard error'
/** Bytes of log handled per event loop turn. */
const LOG_A_TURN = 4096

/** Parameters of an instance. */
export interface InstanceStart {
  readonly host: ProcessHost
  readonly extension: InstalledExtension
  readonly context: RuntimeContext
  readonly grants: Grants
  readonly times: Times
  readonly api: HostApi
  readonly logs: LogRing
  readonly provisions: Pick<Provisions, 'membersFor'>
  /** Whether it runs for a single piece of work: it does not act for the extension, whose own process may run beside it. */
  readonly isControl?: boolean
}

/** One process of an extension with its connection, from start to end. */
export class Instance {
  /** Resolves with the reason if the process ended by itself or exceeded a limit, not after {@link stop}. */
  readonly over: Promise<string>
  readonly #connection: Connection
  readonly #ending = new AbortController()
  #logged: Promise<void> = Promise.resolve()
  #handshake: Handshake | undefined

  private constructor(
    private readonly start: InstanceStart,
    private readonly nonce: string,
    private readonly handle: ProcessHandle,
  ) {
    const { logs, host, extension } = start
    const flooded = new Promise<string>(resolve => {
      this.#logged = this.#readLog(() => resolve(FLOODS))
    })
    this.#connection = new Connection(handle, host.clock, {
      owner: extension.name,
      answer: (method, params) => this.#answer(method, params),
      junk: line => logs.note(`not a message: ${clip(line, 500)}`),
    })
    const ended = handle.exited.then(
      ({ code, signal }) => `the process ended ${signal ? `by ${signal}` : `with code ${code}`}`,
    )
    this.over = Promise.race([
      ended,
      flooded,
      this.#tooMuchMemory(),
      // A process closes its pipes a moment before it exits, and the exit status is the better reason.
      this.#connection.closed.then(({ why, hungUp }) =>
        hungUp ? within(host.clock, DRAIN_MS, ended).catch(() => why) : why,
      ),
    ])
    void this.over.then(why => this.#hungUp(why))
  }

  /**
   * Starts the process, activates it for the extension's source, and performs the handshake. Rejects with an Error; if
   * a process was started, `onStart` has been called before, and the caller has to stop it.
   */
  static async open(start: InstanceStart, onStart: (instance: Instance) => void): Promise<void> {
    const { host, extension, logs } = start
    const launch = await launchOf(host, extension.manifest, extension.root, start.context.bound?.(), extension.key)
    const provided = await start.provisions.membersFor(extension)
    const isConfined = start.context.confined?.() ?? false
    const data = await start.context.storage.folder()
    const secrets = [...launch.secrets, ...provided.secrets]
    const nonce = host.ids.hex(16)
    if (start.isControl) logs.alsoHide(secrets)
    else {
      logs.hide(secrets)
      await host.db.tx(t => new Snapshots(host).activate(t, sourceOf(extension.key), nonce))
    }
    const request = {
      label: `extension ${extension.key}`,
      argv: launch.argv,
      cwd: extension.root,
      env: launch.env,
      stdio: 'pipe',
      onBehalfOf: extension.name,
    } as const
    // The sandbox hides the home except for the extension and its data folder.
    const sandbox = {
      ...{ profile: DEFAULT_PROFILE, roots: [], shows: [extension.root], keeps: [data] },
      fromCatalog: extension.name,
    }
    const handle = isConfined
      ? await spawnConfined(host, `ext_${nonce}`, sandbox, request)
      : await host.needs.processes.spawn(request)
    const instance = new Instance(start, nonce, handle)
    onStart(instance)
    await instance.#shakeHands({ ...provided.members, data_dir: data })
  }

  get pid(): number {
    return this.handle.pid
  }

  /** Kills the process and its group at once; {@link stop} ends the rest. */
  kill(): void {
    this.handle.kill()
  }

  /** Absent before the handshake. */
  get handshake(): Handshake | undefined {
    return this.#handshake
  }

  /** Sends a request; rejects like {@link Connection.request}. */
  request(method: string, params: unknown, timeoutMs: number): Promise<unknown> {
    return this.#connection.request(method, params, timeoutMs)
  }

  /**
   * Runs a health check: undefined if healthy, else the problem. A process without health checks is healthy while it
   * runs.
   */
  async complaint(): Promise<string | undefined> {
    if (this.#handshake?.supports.health_check === false) return undefined
    try {
      const answer = await this.request('health_check', {}, this.start.times.healthTimeout)
      const { healthy, message } = (answer ?? {}) as { healthy?: unknown; message?: unknown }
      if (healthy === true) return undefined
      if (typeof message === 'string') return this.start.logs.redact(clip(message, 500))
      return healthy === false
        ? 'it reports that it is not healthy'
        : 'its answer to health_check has no member healthy that is true or false'
    } catch (error) {
      return this.start.logs.redact(messageOf(error))
    }
  }

  /**
   * Asks the process to exit, then ends its process group: end of input, SIGTERM, SIGKILL. Resolves when nothing is
   * left; when `hurry` aborts, SIGKILL follows at once.
   */
  async stop(reason: string, hurry?: AbortSignal): Promise<void> {
    this.#ending.abort()
    const { times, host } = this.start
    const until = host.clock.monotonic() + times.shutdown
    const kill = () => this.handle.kill()
    if (hurry?.aborted) kill()
    hurry?.addEventListener('abort', kill, { once: true })
    const heard = await this.#askToEnd(reason)
    // A process that did not acknowledge gets no grace period.
    const graceMs = heard ? Math.max(0, until - host.clock.monotonic()) : 0
    await this.handle.stop({ graceMs, termMs: times.signalGrace })
    hurry?.removeEventListener('abort', kill)
    this.#connection.close('it was stopped')
    await within(host.clock, DRAIN_MS, this.#logged).catch(() => {})
    this.start.logs.end()
  }

  /** Dismisses open questions of a process that ended: their answers cannot reach it. */
  async #hungUp(why: string): Promise<void> {
    this.#ending.abort()
    this.#connection.close(why)
    const { host, extension, isControl } = this.start
    // A control process asks no person, and questions of the extension's own process must stay open.
    if (isControl) return
    const { id } = caller(extension.key)
    const dismiss = () => host.needs.callers.dismiss(one => one.id === id, ExtensionErrors.extension_not_running(why))
    dismiss()
    // The last request may not have reached its route yet.
    await turn()
    dismiss()
  }

  /** Kills the process when it uses too much memory, and resolves with that reason; not after its end. */
  async #tooMuchMemory(): Promise<string> {
    const { clock, limits } = this.start.host
    const { maxMemory: most } = limits
    while (most > 0 && !this.#ending.signal.aborted) {
      await clock.sleep(MEMORY_INTERVAL_MS, this.#ending.signal).catch(() => {})
      if (this.#ending.signal.aborted) break
      const used = memoryOf(this.pid, most)
      if (used <= most) continue
      // Not asked to end, because it would take more memory until then.
      this.kill()
      return `it used ${mebibytes(used)} of memory, more than ${mebibytes(most)} (${SubprocessSettings.maxMemory.path})`
    }
    return new Promise(() => {})
  }

  async #readLog(flooded: () => void): Promise<void> {
    const { logs, extension } = this.start
    try {
      for await (const chunk of this.handle.stderr) {
        for (let rest = chunk as Buffer; rest.length > 0; ) {
          const part = logs.isMuted ? rest : rest.subarray(0, LOG_A_TURN)
          if (!onBehalfOf(extension.name, () => logs.push(part))) {
            flooded()
            return
          }
          rest = rest.subarray(part.length)
          if (rest.length > 0) await turn()
        }
      }
    } catch {
      // A destroyed pipe counts as its end.
    }
  }

  /** Whether the process acknowledged; false at once without a handshake. */
  #askToEnd(reason: string): Promise<boolean> {
    if (!this.#handshake) return Promise.resolve(false)
    const { shutdown } = this.start.times
    return this.request('shutdown', { reason, deadline_ms: shutdown }, shutdown).then(
      () => true,
      () => false,
    )
  }

  async #secret(name: string): Promise<string | undefined> {
    const { host, extension, context, logs } = this.start
    const value = await secretOf(host, extension.manifest, name, context.bound?.(), extension.key)
    if (value !== undefined) logs.alsoHide([value])
    return value
  }

  async #shakeHands(more: Readonly<Record<string, unknown>>): Promise<void> {
    const { extension, grants, times, host } = this.start
    const hello = greeting(extension, grants, times, { version: host.needs.host.version, nonce: this.nonce }, more)
    const offered = { provides: extension.manifest.capabilities.provides, permissions: grants.permissions }
    try {
      this.#handshake = checkReply(await this.request('initialize', hello, times.initialize), offered)
    } catch (error) {
      throw this.#connection.isOver ? new Error(await this.over) : error
    }
  }

  #answer(method: string, params: unknown): Promise<unknown> {
    const { extension, grants, api, context } = this.start
    if (!this.#handshake) throw rpcError('not_initialized', 'answer initialize first')
    const { permissions } = this.#handshake.accepted_capabilities
    const who = {
      extension,
      permissions,
      publisher: publisher(extension.key, grants, this.nonce, extension.workspace),
      caller: caller(extension.key),
      storage: context.storage,
      signal: this.#ending.signal,
      notify: (method: string, params: unknown) => this.#connection.notify(method, params),
      secret: (name: string) => this.#secret(name),
    }
    return api.answer(who, method, params)
  }
}
