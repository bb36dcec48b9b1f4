import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { definePlugin, type Plugin } from '../../../../../kernel/plugin.js'
import vault from '../../../../../plugins/access/vault/index.js'
import { daemon, extensions, resources, workspaces } from '../../../../../plugins/index.js'
import {
  type BridgeHost,
  type BridgeProvider,
  BridgeProviders,
  type DeliveryReport,
  type DeliveryReportResult,
  type InboundEvent,
  type IngestResult,
  type ManagedInstance,
  type StateReport,
} from '../../../../../plugins/reach/bridges/api.js'
import bridges from '../../../../../plugins/reach/bridges/index.js'
import { type Scene as Base, scene as base } from '../../../delivery/extensions/scene.js'

/** Has a process of a test do something, by the text of a message that it is to deliver. */
const CHILD = path.join(import.meta.dirname, 'adapter.py')

export interface Making {
  readonly platform?: string
  readonly bridge?: string
  readonly manifest?: string
  /** What the process does otherwise than it should, as `adapter.py` reads it. */
  readonly ways?: Readonly<Record<string, unknown>>
}

export interface Scene extends Base {
  /** Drops an extension with an adapter whose process is `adapter.py`; resolves with its provider. */
  adapter(name: string, making?: Making): Promise<BridgeProvider>
  provider(name: string): BridgeProvider | undefined
}

/** The files of an extension whose process is `adapter.py`. */
export async function adapterFiles(
  name: string,
  { platform = 'probe', bridge = '', manifest = '', ways = {} }: Making = {},
): Promise<Record<string, string>> {
  return {
    'extension.toml': `name = "${name}"
version = "1.0.0"
[capabilities]
provides = ["bridge.adapter"]
[permissions]
requires = ["bridges/instances/report_state", "bridges/messages/ingest", "bridges/deliveries/report"]
[subprocess]
command = "python3"
args = ["adapter.py", '${JSON.stringify(ways)}']
[bridge]
platform = "${platform}"
display_name = "Probe"
${bridge}
${manifest}`,
    'adapter.py': await readFile(CHILD, 'utf8'),
  }
}

/** A kernel with extensions and bridges; the adapters of extensions are used by the test itself. */
export async function scene(plugins: readonly Plugin[] = []): Promise<Scene> {
  const taken: { of?: () => readonly BridgeProvider[] } = {}
  const looker = definePlugin({
    name: 'looker',
    version: '1.0.0',
    service: async () =>
      class {
        constructor(kernel: { collect(of: typeof BridgeProviders): { entry: BridgeProvider }[] }) {
          taken.of = () => kernel.collect(BridgeProviders).map(({ entry }) => entry)
        }
      },
  }).surface({})
  const svc = await base(
    {},
    { plugins: [daemon, resources, workspaces, vault, extensions, bridges, looker, ...plugins] },
  )
  const provider = (name: string) => taken.of?.().find(({ extension }) => extension === name)
  return {
    ...svc,
    provider,
    async adapter(name, making = {}) {
      await svc.drop(name, await adapterFiles(name, making), true)
      await svc.until(name, () => provider(name) !== undefined)
      return provider(name) as BridgeProvider
    },
  }
}

export const managedInstance = (id: string, more: Partial<ManagedInstance> = {}): ManagedInstance => ({
  id,
  displayName: `Bridge ${id}`,
  platform: 'probe',
  providerConfig: { greeting: 'hello' },
  dmPolicy: 'open',
  secrets: [{ binding_name: 'token', kind: 'secret', value: 's3cret-value' }],
  ...more,
})

/** A host that remembers what it is told. */
export class FakeHost implements BridgeHost {
  readonly reports: { readonly id: string; readonly state: StateReport }[] = []
  readonly events: InboundEvent[] = []
  readonly rejected: DeliveryReport[] = []
  /** What the next event comes to. */
  refusal: Error | undefined

  async report(id: string, state: StateReport): Promise<void> {
    this.reports.push({ id, state })
  }

  async ingest(event: InboundEvent): Promise<IngestResult> {
    if (this.refusal) throw this.refusal
    this.events.push(event)
    return { idempotency_key: event.idempotency_key, outcome: 'prompted', session_id: 'ses_1' }
  }

  async reportDelivery(report: DeliveryReport): Promise<DeliveryReportResult> {
    this.rejected.push(report)
    return { outcome: 'recorded' }
  }
}
