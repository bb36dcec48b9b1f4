import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { Alarm } from '../../../../kernel/kit/alarm.js'
import { backoff } from '../../../../kernel/kit/backoff.js'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { SerialBy } from '../../../../kernel/kit/serial.js'
import { shown } from '../../../../kernel/kit/text.js'
import { messageOf, within } from '../../../../kernel/plugin.js'
import {
  type BoundSecret,
  BridgeErrors,
  type BridgeHost,
  type BridgeProvider,
  type DeliveryReport,
  type DeliveryReportResult,
  type InboundEvent,
  type IngestResult,
  type ManagedInstance,
  type StateReport,
} from '../api.js'
import type { K } from '../needs.js'
import type { Instance, Instances } from './instances.js'
import type { Secrets } from './secrets.js'
import type { Standing } from './states.js'

/** Milliseconds for an adapter to confirm its instances; after that it has failed. */
const MANAGE_MS = 60_000
/** Milliseconds for adapters to stop their instances when the plugin ends. */
const END_MS = 5000
/** Failures in a row after which instances are given up. */
const TRIES = 5
const RETRY = { firstMs: 1000, longestMs: 60_000 }
/** Interval for reading a platform's directory. */
const REFRESH_MS = 5 * 60_000

const Report = v.object({
  status: v.picklist(['starting', 'ready', 'degraded', 'auth_required', 'error']),
  reason: v.optional(
    v.picklist(['auth_failed', 'rate_limited', 'webhook_invalid', 'provider_timeout', 'tenant_config_invalid']),
  ),
  message: v.optional(v.string()),
  webhook_public_url: v.optional(v.pipe(v.string(), v.maxLength(2048), v.url())),
})

const Rejection = v.object({
  bridge_instance_id: v.string(),
  remote_message_id: v.pipe(v.string(), v.minLength(1), v.maxLength(1024)),
  status: v.literal('failed'),
  reason: v.pipe(v.string(), v.maxLength(4000)),
})

/** The last set of instances sent to an adapter, so that only changes are sent. */
interface Assignment {
  readonly provider: BridgeProvider
  readonly digest: string
  readonly ids: ReadonlySet<string>
}

/** Key of an adapter: its extension and platform. */
type Key = string

/** Sends adapters their instances, and applies their reports. */
export class Adapters {
  /** Receives events of platforms; set by the inbound part. */
  ingest: (extension: string, event: InboundEvent) => Promise<IngestResult> = async () => {
    throw BridgeErrors.bridge_not_accepting()
  }
  /** Receives late reports about messages; set by the delivery part. */
  reportDelivery: (extension: string, report: DeliveryReport) => Promise<DeliveryReportResult> = async () => {
    throw BridgeErrors.bridge_not_accepting()
  }
  /** Reads the directory of an instance again; set by the directory. */
  refresh: (id: string) => Promise<void> = async () => {}

  readonly #assignments = new Map<Key, Assignment>()
  readonly #failures = new Map<Key, number>()
  /** Instances that an adapter has to stop before it starts them again. */
  readonly #restarting = new Set<string>()
  readonly #serial = new SerialBy()
  readonly #alarm: Alarm

  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
    private readonly secrets: Secrets,
  ) {
    this.#alarm = new Alarm(kernel.clock, { retryMs: 1000 })
  }

  /** Schedules an update of an instance's adapter. */
  mark({ extension, platform }: Pick<Instance, 'extension' | 'platform'>): void {
    this.#alarm.set(dueOf('tell', extension, platform), this.kernel.clock.now())
  }

  /** Schedules an update of every adapter with instances; does nothing while none is enabled. */
  markAll(): void {
    if (this.#assignments.size === 0 && !this.instances.isNeeded) return
    for (const instance of this.instances.list()) this.mark(instance)
    for (const { provider } of this.#assignments.values()) this.mark(provider)
  }

  /** Whether an adapter runs an instance. */
  runs(id: string): boolean {
    return [...this.#assignments.values()].some(({ ids }) => ids.has(id))
  }

  /** @throws Fault `bridge_transition` */
  async restart(id: string): Promise<void> {
    await this.kernel.db.tx(t => {
      const { status } = this.instances.getVisible(id)
      if (status === 'disabled')
        throw BridgeErrors.bridge_transition('a disabled bridge does not run; enable it', {
          next: command('bridge enable', id),
        })
      this.instances.move(t, id, { status: 'starting' })
    })
    const instance = this.instances.get(id)
    if (!instance) return
    this.#restarting.add(id)
    this.#failures.delete(keyOf(instance))
    this.mark(instance)
  }

  /** Runs until the signal aborts; sleeps without a timer while no instance is enabled. */
  async run(signal: AbortSignal): Promise<void> {
    await this.kernel.needs.daemon.released(signal)
    this.markAll()
    const failed = (error: unknown) => this.kernel.log.error(`bridges: ${messageOf(error)}`)
    const fire = async (keys: readonly string[]) => {
      for (const key of keys) this.#fire(key, signal, failed)
    }
    await this.#alarm.run(signal, { fire, failed })
  }

  /** Stops the instances of all adapters. */
  async end(): Promise<void> {
    await Promise.all(
      [...this.#assignments].map(([key, { provider }]) =>
        this.#serial.run(key, async () => {
          this.#assignments.delete(key)
          await within(this.kernel.clock, END_MS, provider.manage([], this.hostOf(provider))).catch(error =>
            this.kernel.log.warn(`the adapter of ${provider.platform} did not end: ${messageOf(error)}`),
          )
        }),
      ),
    )
  }

  /** The API of the daemon for an adapter. */
  hostOf({ extension }: Pick<BridgeProvider, 'extension'>): BridgeHost {
    return {
      report: (id, state) => this.report(extension, id, state),
      ingest: event => this.ingest(extension, event),
      reportDelivery: async report => this.reportDelivery(extension, checked(report)),
    }
  }

  /** @throws Fault `bridge_not_found`, `bridge_report_invalid`, `bridge_transition` */
  async report(extension: string, id: string, report: StateReport): Promise<void> {
    const decoded = v.safeParse(Report, report)
    if (!decoded.success)
      throw BridgeErrors.bridge_report_invalid(`${v.getDotPath(decoded.issues[0]) ?? 'report'}: not valid`)
    const { status, reason, message, webhook_public_url: webhookUrl } = decoded.output
    const standing: Standing = status === 'starting' || status === 'ready' ? { status } : { status, reason, message }
    const wasReady = await this.kernel.db.tx(t => {
      const instance = this.instances.get(id)
      if (instance?.extension !== extension)
        throw BridgeErrors.bridge_not_found(`the extension ${extension} has no bridge ${shown(id, 100)}`)
      if (!instance.enabled || !this.instances.move(t, id, standing))
        throw BridgeErrors.bridge_transition(
          `the status of the bridge cannot change from ${instance.status} to ${status}`,
        )
      if (webhookUrl !== undefined) this.instances.change(t, id, { webhookUrl })
      return instance.status === 'ready'
    })
    if (status === 'ready' && !wasReady) this.#alarm.set(dueOf('read', id), this.kernel.clock.now())
  }

  /** Not awaited, so that a slow adapter delays only itself. */
  #fire(key: string, signal: AbortSignal, failed: (error: unknown) => void): void {
    const [verb, first = '', platform = ''] = JSON.parse(key) as string[]
    const work =
      verb === 'tell'
        ? this.#serial.run(keyOf({ extension: first, platform }), () => this.#tell(first, platform))
        : this.#read(first)
    void work.catch(error => {
      if (!signal.aborted) failed(error)
    })
  }

  async #read(id: string): Promise<void> {
    if (!this.instances.accepts(id)) return
    this.#alarm.set(dueOf('read', id), this.kernel.clock.now() + REFRESH_MS)
    await this.refresh(id)
  }

  async #tell(extension: string, platform: string): Promise<void> {
    const key = keyOf({ extension, platform })
    const own = this.instances.list().filter(one => one.extension === extension && one.platform === platform)
    const provider = this.instances.providerOf({ extension, platform })
    if (!provider) {
      this.#assignments.delete(key)
      const message = `the extension ${extension} does not run`
      await this.#moveAll(
        own.filter(({ status }) => status === 'ready'),
        { status: 'degraded', message },
      )
      return
    }
    const wanted = await this.#wanted(own, this.#assignments.get(key))
    const restarting = own.filter(({ id }) => this.#restarting.delete(id)).map(({ id }) => id)
    if (restarting.length > 0 && this.#assignments.has(key))
      await this.#manage(
        key,
        provider,
        wanted.filter(({ id }) => !restarting.includes(id)),
      )
    await this.#manage(key, provider, wanted)
  }

  /** The instances that the adapter has to run, without those that lack a secret and those that were given up. */
  async #wanted(own: readonly Instance[], assignment: Assignment | undefined): Promise<ManagedInstance[]> {
    const wanted: ManagedInstance[] = []
    for (const instance of own) {
      const { id, status } = instance
      if (!instance.enabled || status === 'error') continue
      const [missing] = this.secrets.missing(instance)
      const bound = missing === undefined ? await this.secrets.reveal(id) : []
      if (missing !== undefined) {
        const message = `the secret ${missing} is not bound; bind it: svc bridge secret-bindings put ${id} ${missing}`
        await this.#moveAll([instance], { status: 'auth_required', reason: 'tenant_config_invalid', message })
        continue
      }
      if (status === 'auth_required' && !assignment?.ids.has(id))
        await this.#moveAll([instance], { status: 'starting' })
      wanted.push(managedOf(instance, bound))
    }
    return wanted.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  async #manage(key: Key, provider: BridgeProvider, wanted: readonly ManagedInstance[]): Promise<void> {
    const assignment = this.#assignments.get(key)
    const digest = createHash('sha256').update(JSON.stringify(wanted)).digest('hex')
    const isNew = assignment?.provider !== provider
    if (isNew ? wanted.length === 0 : assignment.digest === digest) return
    try {
      await within(this.kernel.clock, MANAGE_MS, provider.manage(wanted, this.hostOf(provider)))
      this.#failures.delete(key)
      if (wanted.length === 0) this.#assignments.delete(key)
      else this.#assignments.set(key, { provider, digest, ids: new Set(wanted.map(({ id }) => id)) })
    } catch (error) {
      this.#assignments.delete(key)
      await this.#failed(key, wanted, provider, error)
    }
  }

  async #failed(key: Key, wanted: readonly ManagedInstance[], provider: BridgeProvider, error: unknown): Promise<void> {
    const { clock, ids, log } = this.kernel
    const failures = (this.#failures.get(key) ?? 0) + 1
    const message = this.instances.plain(messageOf(error))
    log.warn(`the adapter of ${provider.platform} (${provider.extension}) did not start: ${message}`, { failures })
    const isLast = failures >= TRIES
    await this.#moveAll(wanted, { status: isLast ? 'error' : 'degraded', reason: 'provider_timeout', message })
    if (isLast) this.#failures.delete(key)
    else {
      this.#failures.set(key, failures)
      this.#alarm.set(
        dueOf('tell', provider.extension, provider.platform),
        clock.now() + backoff(failures, ids.random, RETRY),
      )
    }
  }

  async #moveAll(all: readonly { readonly id: string }[], standing: Standing): Promise<void> {
    if (all.length === 0) return
    await this.kernel.db.tx(t => {
      for (const { id } of all) this.instances.move(t, id, standing)
    })
  }
}

/** An instance in the form for its adapter. */
export function managedOf(instance: Instance, secrets: readonly BoundSecret[]): ManagedInstance {
  const { id, displayName, platform, workspaceId, providerConfig, dmPolicy } = instance
  const workspace = workspaceId === undefined ? {} : { workspaceId }
  return { id, displayName, platform, ...workspace, providerConfig, dmPolicy, secrets }
}

/** @throws Fault `bridge_report_invalid` */
function checked(report: DeliveryReport): DeliveryReport {
  const decoded = v.safeParse(Rejection, report)
  if (decoded.success) return decoded.output
  throw BridgeErrors.bridge_report_invalid(`${v.getDotPath(decoded.issues[0]) ?? 'report'}: not valid`)
}

const keyOf = ({ extension, platform }: Pick<Instance, 'extension' | 'platform'>): Key =>
  JSON.stringify([extension, platform])

/** A key of the alarm: an action and its subject. */
const dueOf = (verb: 'tell' | 'read', ...what: readonly string[]): string => JSON.stringify([verb, ...what])
