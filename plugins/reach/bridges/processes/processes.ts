import type { HostCall, InstalledExtension, ProvisionOwner } from '../../../delivery/extensions/api.js'
import type { BridgeProvider, InboundEvent, StateReport } from '../api.js'
import { BridgeErrors } from '../api.js'
import type { K } from '../needs.js'
import { ProcessAdapter } from './adapter.js'
import { checked, DeliveryReportParams, defined, IngestParams, ReportParams } from './schemas.js'

/** Adapters in extension processes: one for each name of an extension with `[bridge]`. */
export class BridgeProcesses {
  readonly #adapters = new Map<string, ProcessAdapter>()
  /** By the digest of the manifest, so that an unchanged extension keeps the same object. */
  readonly #providers = new Map<string, { readonly digest: string; readonly provider: BridgeProvider }>()
  readonly #listeners = new Set<() => void>()
  /** The {@link providers} at the last notification. */
  #lastProviders: readonly BridgeProvider[] = []

  constructor(private readonly kernel: Pick<K, 'needs' | 'log' | 'clock'>) {}

  /** Adapters of all loaded extensions with `[bridge]`, by name. */
  providers(): readonly BridgeProvider[] {
    const names = new Set(this.#bridges().map(({ name }) => name))
    for (const name of this.#providers.keys()) if (!names.has(name)) this.#providers.delete(name)
    return [...names].sort().flatMap(name => this.#provider(name) ?? [])
  }

  /** Calls the listener when {@link providers} changes; returns a function that unsubscribes. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Handles a change of extensions. */
  refresh(): void {
    const before = this.#lastProviders
    const now = this.providers()
    this.#lastProviders = now
    if (now.length === before.length && now.every((provider, at) => provider === before[at])) return
    for (const listener of this.#listeners) listener()
  }

  /** The provision through which the extensions plugin runs the processes. */
  owner(): ProvisionOwner {
    return {
      provision: 'bridge.adapter',
      runtime: ({ name }) => this.#adapter(name).members(),
      isNeeded: ({ name, key }) => this.#chosen(name)?.key === key && this.#adapter(name).isNeeded,
      heard: ({ name, key }, news) => {
        if (this.#chosen(name)?.key === key) this.#adapter(name).heard(news)
      },
      methods: {
        'bridges/instances/report_state': call => this.#reportState(call),
        'bridges/messages/ingest': call => this.#ingest(call),
        'bridges/deliveries/report': call => this.#reportDelivery(call),
      },
    }
  }

  async #reportState(call: HostCall): Promise<unknown> {
    const { bridge_instance_id: id, ...state } = checked(ReportParams, call.params)
    await this.#hostFor(call, id).report(id, defined(state) as StateReport)
    return {}
  }

  async #ingest(call: HostCall): Promise<unknown> {
    const event = checked(IngestParams, call.params)
    return this.#hostFor(call, event.bridge_instance_id).ingest(defined(event) as InboundEvent)
  }

  async #reportDelivery(call: HostCall): Promise<unknown> {
    const report = checked(DeliveryReportParams, call.params)
    return this.#hostFor(call, report.bridge_instance_id).reportDelivery(report)
  }

  /** @throws Fault `bridge_not_found` for an instance that its process does not manage */
  #hostFor({ extension: { name, key } }: HostCall, instanceId: string) {
    const adapter = this.#adapter(name)
    if (this.#chosen(name)?.key !== key || !adapter.manages(instanceId) || !adapter.host)
      throw BridgeErrors.bridge_not_found(`${name} manages no bridge ${JSON.stringify(instanceId)}`)
    return adapter.host
  }

  #provider(name: string): BridgeProvider | undefined {
    const extension = this.#chosen(name)
    if (!extension) return undefined
    const known = this.#providers.get(name)
    const digest = `${extension.key} ${extension.digest}`
    if (known?.digest === digest) return known.provider
    const provider = this.#adapter(name).provider(extension.manifest)
    if (provider) this.#providers.set(name, { digest, provider })
    return provider
  }

  #adapter(name: string): ProcessAdapter {
    let adapter = this.#adapters.get(name)
    if (!adapter) {
      adapter = new ProcessAdapter(this.kernel, () => this.#chosen(name), name)
      this.#adapters.set(name, adapter)
    }
    return adapter
  }

  /** The extension whose process is the adapter: the installed one, else the first link of a developer. */
  #chosen(name: string): InstalledExtension | undefined {
    const all = this.#bridges().filter(extension => extension.name === name)
    return all.find(({ key }) => key === name) ?? all[0]
  }

  /** Loaded extensions with a bridge, because only these have a process, and bundled ones, which are loaded on demand. */
  #bridges(): readonly InstalledExtension[] {
    const { current: extensions } = this.kernel.needs.extensions
    const loaded = extensions?.installed().filter(({ state }) => state !== 'disabled' && state !== 'enabled') ?? []
    return [...loaded, ...(extensions?.bundled() ?? [])].filter(({ manifest }) => manifest.bridge)
  }
}
