import { Console } from 'node:console'
import type { Readable, Writable } from 'node:stream'
import { RpcConnection, RpcError } from './rpc.js'
import { type ManagedInstance, messageOf, type Open, Running } from './running.js'
import { realTiming, type Timing } from './timing.js'
import type { Delivery, Host, Unsettled } from './types.js'

const METHODS = [
  'health_check',
  'shutdown',
  'bridges/deliver',
  'bridges/targets/snapshot',
  'bridges/instances/set',
  'bridges/settle',
  'bridges/verify',
  'bridges/webhook/register',
]

const PROTOCOL = '1'

/** Definition of an adapter. */
export interface Bridge {
  /** Name and version, as in the manifest of the extension. */
  readonly name: string
  readonly version: string
  /** Opens one instance. It may resolve before the platform responds; `host.report` then reports the state. */
  readonly open: Open
}

/** Streams and clock; tests replace them. */
export interface Surroundings {
  readonly input?: Readable
  readonly output?: Writable
  readonly timing?: Timing
}

interface Initialize {
  readonly capabilities?: { readonly provides?: readonly string[]; readonly granted_permissions?: readonly string[] }
  readonly runtime?: {
    readonly data_dir?: string
    readonly bridge?: { readonly purpose?: string; readonly managed_instances?: readonly ManagedInstance[] }
  }
}

/**
 * Serves the daemon on standard input and output; resolves after a shutdown request or the end of input, with all instances closed.
 * The console is redirected to standard error, because standard output carries the protocol.
 */
export async function runBridge(bridge: Bridge, surroundings: Surroundings = {}): Promise<void> {
  const { input = process.stdin, output = process.stdout, timing = realTiming } = surroundings
  if (output === process.stdout) globalThis.console = new Console(process.stderr, process.stderr)
  const served = new Served(bridge, timing, input, output)
  await served.ended
}

/** The adapter's side of the connection to the daemon. */
class Served {
  readonly ended: Promise<void>
  #end: () => void = () => {}
  readonly #connection: RpcConnection
  readonly #running = new Map<string, Running>()
  #dataDir: string | undefined
  #purpose: Host['purpose'] = 'service'
  /** Serialises changes of the set of instances. */
  #changes: Promise<void> = Promise.resolve()

  constructor(
    private readonly bridge: Bridge,
    private readonly timing: Timing,
    input: Readable,
    output: Writable,
  ) {
    this.#connection = new RpcConnection(input, output, (method, params) => this.#answer(method, params))
    const stopRequest = new Promise<void>(resolve => {
      this.#end = resolve
    })
    this.ended = Promise.race([stopRequest, this.#connection.closed]).then(() => this.#set([]))
  }

  async #answer(method: string, params: unknown): Promise<unknown> {
    switch (method) {
      case 'initialize':
        return this.#initialize(params as Initialize)
      case 'health_check':
        return this.#health()
      case 'shutdown':
        setImmediate(this.#end)
        return { acknowledged: true }
      case 'bridges/instances/set':
        return this.#set((params as { managed_instances?: readonly ManagedInstance[] }).managed_instances ?? [])
      case 'bridges/deliver': {
        const { delivery } = params as { delivery: Delivery }
        return this.#of(delivery).deliver(delivery)
      }
      case 'bridges/settle': {
        const { delivery, since } = params as { delivery: Delivery; since: number }
        const unsettled: Unsettled = { ...delivery, since }
        return this.#of(delivery).settle(unsettled)
      }
      case 'bridges/targets/snapshot':
        return { targets: await this.#of(params).targets() }
      case 'bridges/verify':
        return { checks: await this.#of(params).verify() }
      case 'bridges/webhook/register':
        return this.#of(params).registerWebhook()
      default:
        throw new RpcError(-32601, `no method ${method}`, { code: 'method_not_found' })
    }
  }

  #initialize({ capabilities, runtime }: Initialize) {
    this.#dataDir = runtime?.data_dir
    this.#purpose = runtime?.bridge?.purpose === 'control' ? 'control' : 'service'
    const { provides = [], granted_permissions: permissions = [] } = capabilities ?? {}
    // The response is sent first: the daemon waits only a few seconds for it and accepts no report before.
    this.#changes = this.#changes.then(() => new Promise(resolve => setImmediate(resolve)))
    void this.#set(runtime?.bridge?.managed_instances ?? [])
    return {
      protocol_version: PROTOCOL,
      extension_info: { name: this.bridge.name, version: this.bridge.version, sdk_name: 'svc/bridge-kit' },
      accepted_capabilities: { provides, permissions },
      implemented_methods: METHODS,
      supports: { health_check: true },
    }
  }

  #health() {
    const deaf = [...this.#running.values()].flatMap(running => {
      const why = running.deaf()
      return why === undefined ? [] : [`${running.managed.instance.id}: ${why}`]
    })
    return deaf.length === 0 ? { healthy: true } : { healthy: false, message: deaf.join('; ') }
  }

  /** Opens and closes instances to match the wanted set; unchanged ones keep running. */
  #set(wanted: readonly ManagedInstance[]): Promise<void> {
    const change = this.#changes.then(() => this.#change(wanted))
    this.#changes = change.catch(error => void process.stderr.write(`${messageOf(error)}\n`))
    return change
  }

  async #change(wanted: readonly ManagedInstance[]): Promise<void> {
    const byId = new Map(wanted.map(managed => [managed.instance.id, managed]))
    const ending = [...this.#running.values()].filter(({ managed }) => {
      const next = byId.get(managed.instance.id)
      return next === undefined || JSON.stringify(next) !== JSON.stringify(managed)
    })
    for (const { managed } of ending) this.#running.delete(managed.instance.id)
    await Promise.all(ending.map(running => running.close()))
    for (const [id, managed] of byId) {
      if (this.#running.has(id)) continue
      const running = new Running(managed, this.#connection, this.timing, this.#dataDir, this.#purpose)
      this.#running.set(id, running)
      void running.open(this.bridge.open)
    }
  }

  #of(params: unknown): Running {
    const { bridge_instance_id: id = '' } = (params ?? {}) as { bridge_instance_id?: string }
    const running = this.#running.get(id)
    if (!running) throw new RpcError(-32602, `no instance ${id} is managed here`, { code: 'bridge_not_found' })
    return running
  }
}
