import { aborted } from '../../../kernel/kit/backoff.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { Serial } from '../../../kernel/kit/serial.js'
import { messageOf } from '../../../kernel/plugin.js'
import { durationMs } from '../../../schemas/duration.js'
import {
  type CallOptions,
  type ControlLaunch,
  type ControlProcess,
  ExtensionErrors,
  type Grants,
  grantsOf,
  HOOK_METHOD,
  type InstalledExtension,
  type LogRing,
} from '../extensions/api.js'
import { publisher, sourceOf } from './actors.js'
import type { ExtensionRuntime, RuntimeContext, RuntimeHealth } from './api.js'
import { NoAnswer, NotSent } from './connection.js'
import { controlled } from './control.js'
import { ExtensionCrashLoop } from './events.js'
import type { Times } from './handshake.js'
import { HostApi } from './host-api.js'
import { Instance } from './instance.js'
import type { K } from './needs.js'
import { Provisions } from './provisions.js'
import { type SubprocessLimits, SubprocessSettings } from './settings.js'
import { Snapshots } from './snapshots.js'
import { after, backoffMs, MAX_FAILURES, type SupervisionEvent, type SupervisionState } from './states.js'

/** Dependencies of the processes of extensions. */
export interface ProcessHost extends Pick<K, 'clock' | 'ids' | 'log' | 'db' | 'records' | 'env' | 'needs' | 'collect'> {
  readonly limits: SubprocessLimits
}

type Details = { readonly reason: string; readonly until?: number }

/**
 * Supervises the process of `[subprocess]`: starts, initializes and health-checks it, and restarts it with back-off
 * after a failure, up to five times in a row. Its state is in {@link health}, its output in the log.
 */
export class SubprocessRuntime implements ExtensionRuntime {
  #grants: Grants
  readonly #logs: LogRing
  readonly #api: HostApi
  readonly #times: Times
  readonly #listeners = new Set<() => void>()
  #state: SupervisionState = { status: 'stopped' }
  #failures = 0
  #instance: Instance | undefined
  #startedAt = 0
  #stopping = new AbortController()
  #hurry = new AbortController()
  #supervising: Promise<void> = Promise.resolve()
  readonly #provisions: Provisions
  /** True between {@link start} and {@link stop}. */
  #isLoaded = false
  /** Processes for a single piece of work. */
  readonly #controls = new Map<AbortController, Promise<unknown>>()
  /** Serializes starts and stops. */
  readonly #changes = new Serial()

  constructor(
    private readonly host: ProcessHost,
    private readonly extension: InstalledExtension,
    private readonly context: RuntimeContext,
  ) {
    const { manifest } = extension
    this.#grants = this.#granted()
    this.#logs = context.logs
    this.#provisions = new Provisions(host)
    this.#api = new HostApi(host, this.#provisions)
    this.#times = {
      initialize: 5000,
      healthInterval: durationMs(manifest.subprocess?.health_check_interval ?? '') ?? 30_000,
      healthTimeout: 5000,
      hook: 5000,
      shutdown: durationMs(manifest.subprocess?.shutdown_timeout ?? '') ?? 10_000,
      signalGrace: 10_000,
    }
  }

  /** Grants of the running or last process. */
  get grants(): Grants {
    return this.#grants
  }

  #granted(): Grants {
    return grantsOf(this.extension, this.host.limits, this.context.consents?.())
  }

  get state(): SupervisionState {
    return this.#state
  }

  /**
   * Resolves when the first process is ready or none is needed; rejects when it fails, which does not end the restarts.
   */
  start(): Promise<void> {
    this.#isLoaded = true
    return this.#changes.run(() => {
      if (!this.#isLoaded) throw ExtensionErrors.extension_not_running(`${this.extension.name} was stopped`)
      return this.#begin()
    })
  }

  /** @param deadlineMs milliseconds until the rest is killed */
  stop({ deadlineMs = Number.POSITIVE_INFINITY }: { readonly deadlineMs?: number } = {}): Promise<void> {
    this.#isLoaded = false
    // Aborts a start in progress; queued changes then find nothing to start.
    this.#stopping.abort(new Error('it was stopped'))
    for (const control of this.#controls.keys()) control.abort(new Error('the extension is ended'))
    if (deadlineMs <= 0) this.#hurry.abort()
    const timer = this.host.clock.timeout(deadlineMs, () => this.#hurry.abort())
    return this.#changes
      .run(async () => {
        await this.#finish()
        await Promise.allSettled(this.#controls.values())
      })
      .finally(() => timer.cancel())
  }

  async control<T>(
    launch: ControlLaunch,
    work: (process: ControlProcess) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const { host, extension, context } = this
    if (!this.#isLoaded) throw ExtensionErrors.extension_not_running(`${extension.name} was stopped`)
    const ended = new AbortController()
    const start = { host, extension, context, grants: this.#granted(), times: this.#times }
    const either = AbortSignal.any([signal, ended.signal])
    const done = controlled({ ...start, signal: either }, launch, work)
    this.#controls.set(ended, done)
    return done.finally(() => this.#controls.delete(ended))
  }

  reconsider(): Promise<void> {
    return this.#changes.run(async () => {
      if (!this.#isLoaded) return
      const isNeeded = this.#provisions.isNeeded(this.extension)
      if (isNeeded === (this.#state.status !== 'deferred')) return
      await this.#finish()
      await this.#begin()
    })
  }

  restart(): Promise<void> {
    return this.#changes.run(async () => {
      if (!this.#isLoaded) return
      await this.#finish()
      await this.#begin()
    })
  }

  async #begin(): Promise<void> {
    if (this.#state.status !== 'stopped') return
    if (!this.#provisions.isNeeded(this.extension)) {
      this.#to('defer')
      return
    }
    this.#to('start')
    this.#failures = 0
    this.#stopping = new AbortController()
    this.#hurry = new AbortController()
    this.#grants = this.#granted()
    if (this.grants.dropped.length > 0) {
      this.#logs.note(`not granted to an extension from a marketplace: ${this.grants.dropped.join(', ')}`)
    }
    await new Promise<void>((resolve, reject) => {
      this.#supervising = this.#supervise(failure => (failure === undefined ? resolve() : reject(failure)))
    })
  }

  async #finish(): Promise<void> {
    if (this.#state.status === 'stopped') return
    if (this.#state.status === 'deferred') {
      this.#to('stop')
      this.#to('ended')
      return
    }
    this.#stopping.abort(new Error('it was stopped'))
    await this.#supervising
    this.#provisions.tell(this.extension, { status: 'ended' })
  }

  health(): RuntimeHealth {
    const state = this.#state
    const { status } = state
    return {
      health:
        status === 'healthy'
          ? 'healthy'
          : status === 'stopped' ||
              status === 'deferred' ||
              status === 'starting' ||
              status === 'ready' ||
              status === 'stopping'
            ? 'unknown'
            : 'unhealthy',
      ...('reason' in state ? { message: state.reason } : {}),
      ...(this.#instance ? { pid: this.#instance.pid, startedAt: this.#startedAt } : {}),
      consecutiveFailures: this.#failures,
      restartBackoffMs: status === 'waiting' ? Math.max(0, state.until - this.host.clock.now()) : 0,
      disabled: status === 'given_up',
      deferred: status === 'deferred',
    }
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Calls a service method of the process, for example `tools/call`. @throws Fault `extension_not_running` (503),
   * `extension_method_missing` (422), `extension_call_failed` (500) with the error of the process
   */
  async call(method: string, params: unknown, { timeoutMs, signal, secrets }: CallOptions = {}): Promise<unknown> {
    const { callTimeout } = this.host.limits
    const { name } = this.extension
    const handshake = this.#instance?.handshake
    if (!this.#instance || !handshake || this.#stopping.signal.aborted) {
      throw ExtensionErrors.extension_not_running(`the process of ${name} does not run now`)
    }
    const { event } = Object(params) as { readonly event?: unknown }
    if (method === HOOK_METHOD) {
      if (!handshake.supported_hook_events.includes(String(event)))
        throw ExtensionErrors.extension_method_missing(`${name} does not name ${event} in supported_hook_events`)
    } else if (!handshake.implemented_methods.includes(method))
      throw ExtensionErrors.extension_method_missing(`${name} does not implement ${method}`)
    if (secrets) this.#logs.alsoHide(secrets)
    try {
      return await orAborted(this.#instance.request(method, params, timeoutMs ?? callTimeout), signal)
    } catch (error) {
      if (error instanceof NotSent) throw ExtensionErrors.extension_busy(`${method} of ${name}: ${error.message}`)
      const { path } = SubprocessSettings.callTimeout
      if (error instanceof NoAnswer && timeoutMs === undefined)
        throw ExtensionErrors.extension_call_failed(`${method} of ${name}: ${error.message} (${path})`, {
          next: command('config set', path, `${(callTimeout * 2) / 1000}s`),
        })
      throw ExtensionErrors.extension_call_failed(`${method} of ${name}: ${this.#logs.redact(messageOf(error))}`)
    }
  }

  implements(method: string): boolean {
    return this.#instance?.handshake?.implemented_methods.includes(method) === true && !this.#stopping.signal.aborted
  }

  /** Runs until stopped or given up; calls `first` with the result of the first start. */
  async #supervise(first: (failure?: Error) => void): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const reason = await this.#run(signal, first)
      if (signal.aborted) break
      this.#failures++
      this.#to('fail', { reason })
      this.#logs.note(`the process failed, ${this.#failures} in a row: ${reason}`)
      this.host.log.warn('the process of an extension failed', {
        extension: this.extension.name,
        reason,
        failures: this.#failures,
      })
      if (this.#failures < MAX_FAILURES) this.#provisions.tell(this.extension, { status: 'failed', reason })
      await this.#end(reason)
      first(new Error(reason))
      if (signal.aborted) break
      if (this.#failures >= MAX_FAILURES) {
        await this.#giveUp(reason)
        await aborted(signal)
        break
      }
      const pause = backoffMs(this.#failures)
      this.#logs.note(`it is started again in ${pause / 1000} s`)
      this.#to('wait', { reason, until: this.host.clock.now() + pause })
      await this.host.clock.sleep(pause, signal).catch(() => {})
      if (!signal.aborted) this.#to('start')
    }
    this.#to('stop')
    await this.#end('stop')
    first(ExtensionErrors.extension_not_running(`${this.extension.name} was stopped`))
    this.#to('ended')
  }

  /** Runs one process until it fails or the signal aborts; returns the reason of the failure. */
  async #run(signal: AbortSignal, first: () => void): Promise<string> {
    const { host, extension, context, grants } = this
    const provisions = this.#provisions
    const over = new AbortController()
    const opened = Instance.open(
      { host, extension, context, grants, times: this.#times, api: this.#api, logs: this.#logs, provisions },
      instance => {
        this.#instance = instance
        this.#startedAt = host.clock.now()
        signal.throwIfAborted()
      },
    )
    const failed = opened.then(
      () => {
        if (signal.aborted) return ''
        this.#to('shaken')
        this.#logs.note(`the process runs, pid ${this.#instance?.pid}`)
        provisions.tell(extension, { status: 'ready' })
        first()
        return Promise.race([this.#instance?.over ?? '', this.#watchHealth(over.signal)])
      },
      error => this.#logs.redact(messageOf(error)),
    )
    try {
      // A start that hangs in the daemon itself is awaited, because its process would be left behind.
      return await Promise.race([failed, aborted(signal).then(() => (this.#instance ? '' : failed))])
    } finally {
      over.abort()
    }
  }

  /** Runs health checks periodically; resolves with the reason after too many failures in a row. */
  async #watchHealth(signal: AbortSignal): Promise<string> {
    const { escalation } = this.host.limits
    for (let bad = 0; ; ) {
      await this.host.clock.sleep(this.#times.healthInterval, signal)
      const reason = await this.#instance?.complaint()
      signal.throwIfAborted()
      bad = reason === undefined ? 0 : bad + 1
      if (reason === undefined) this.#failures = 0
      this.#to(reason === undefined ? 'well' : 'unwell', { reason: reason ?? '' })
      if (bad === escalation && reason !== undefined) return `unhealthy, ${bad} checks in a row: ${reason}`
    }
  }

  async #end(reason: string): Promise<void> {
    const instance = this.#instance
    if (!instance) return
    await instance.stop(reason, this.#hurry.signal).catch(error => {
      this.host.log.error('the process of an extension does not end', {
        extension: this.extension.name,
        error: messageOf(error),
      })
    })
    this.#instance = undefined
  }

  /** Deletes the published records, because no process maintains them any more. */
  async #giveUp(reason: string): Promise<void> {
    const { host, extension } = this
    // Deletes as the extension, so that records which the daemon read from its folder stay.
    const actor = publisher(extension.key, this.grants, '')
    try {
      await host.db.tx(t => {
        new Snapshots(host).reset(t, actor, sourceOf(extension.key))
        host.needs.events.emit(
          t,
          ExtensionCrashLoop,
          { name: extension.name, failures: this.#failures, error: reason },
          { subject: extension.name },
        )
      })
    } catch (error) {
      host.log.error('records published by an extension could not be removed', {
        extension: extension.name,
        error: messageOf(error),
      })
    }
    this.#logs.note(
      `the process is not restarted after ${this.#failures} failures in a row; try again: svc extension reload`,
    )
    this.#to('give_up', { reason })
    this.#provisions.tell(extension, { status: 'given_up', reason })
  }

  #to(event: SupervisionEvent, details: Details = { reason: '' }): void {
    const status = after(this.#state.status, event)
    this.#state = stateOf(status, details)
    for (const listener of this.#listeners) listener()
  }
}

/** The result of the work, or the reason of the signal if that aborts first. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  let stop = () => {}
  const over = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason)
  })
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop)
  try {
    return await Promise.race([work, over])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

function stateOf(status: SupervisionState['status'], { reason, until = 0 }: Details): SupervisionState {
  if (status === 'waiting') return { status, reason, until }
  if (status === 'unhealthy' || status === 'ending' || status === 'given_up') return { status, reason }
  return { status }
}
