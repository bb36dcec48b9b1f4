import path from 'node:path'
import * as v from 'valibot'
import { issueLine } from '../../../../kernel/kit/issue-text.js'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { Serial } from '../../../../kernel/kit/serial.js'
import { faultOf, messageOf } from '../../../../kernel/plugin.js'
import {
  ExtensionErrors,
  type ExtensionsApi,
  type InstalledExtension,
  type ProcessNews,
  type ProvidedMembers,
} from '../../../delivery/extensions/api.js'
import type {
  BridgeAddress,
  BridgeHost,
  BridgeProvider,
  DeliveryRequest,
  DeliveryResult,
  Examined,
  ManagedInstance,
  SettleResult,
  SnapshotTarget,
  StateReport,
  VerifyCheck,
} from '../api.js'
import { BridgeErrors } from '../api.js'
import type { K } from '../needs.js'
import { Examination, PASSES } from './examination.js'
import { Checked, Delivered, Settled, Targets, Verified } from './schemas.js'

const SET = 'bridges/instances/set'
/** Milliseconds for passing a changed set of instances. */
const SET_MS = 10_000
/** Bytes of a JSON Schema. */
const SCHEMA_MAX = 64 * 1024
/** Faults of a call that certainly did not reach the process. */
const UNSENT: readonly string[] = ['extension_not_running', 'extension_busy', 'extension_not_found']

/** Last known state of the process. */
type Standing = ProcessNews['status'] | 'unknown'

/** The kernel for bridges in processes. */
export type ProcessKernel = Pick<K, 'needs' | 'log' | 'clock'>

/** The adapter in an extension's process, whether it runs or not. */
export class ProcessAdapter {
  host: BridgeHost | undefined
  #managed: readonly ManagedInstance[] = []
  /** Version of the wanted set of instances; {@link #appliedVersion} is the version in the running process. */
  #wanted = 0
  #appliedVersion = -1
  #standing: Standing = 'unknown'
  readonly #changes = new Serial()
  /** Serializes processes for checks. */
  readonly #examinations = new Serial()
  /** The instance being checked. */
  #examined:
    | { readonly instance: ManagedInstance; readonly abort: AbortController; readonly done: Promise<unknown> }
    | undefined

  constructor(
    private readonly kernel: ProcessKernel,
    /** The installed extension with the process; undefined if there is none. */
    private readonly extension: () => InstalledExtension | undefined,
    readonly name: string,
  ) {}

  get isNeeded(): boolean {
    return this.#managed.length > 0
  }

  manages(instanceId: string): boolean {
    return this.#managed.some(({ id }) => id === instanceId)
  }

  /** Members of `runtime` for a starting process. */
  members(): ProvidedMembers {
    this.#appliedVersion = this.#wanted
    // Both processes share one log, so secrets of both are redacted.
    const examined = this.#examined ? [this.#examined.instance] : []
    return { members: this.#runtime('service', this.#managed), secrets: secretsOf([...this.#managed, ...examined]) }
  }

  #runtime(purpose: 'service' | 'control', managed: readonly ManagedInstance[], more: object = {}) {
    const { platform } = this.extension()?.manifest.bridge ?? {}
    const instances = managed.map(toWire)
    return {
      bridge: { runtime_version: '2', purpose, provider: this.name, platform, ...more, managed_instances: instances },
    }
  }

  heard(news: ProcessNews): void {
    this.#standing = news.status
    if (news.status === 'ready' && this.#appliedVersion !== this.#wanted) void this.#follow()
    if (news.status !== 'failed' && news.status !== 'given_up') return
    const status = news.status === 'failed' ? 'degraded' : 'error'
    this.#report({ status, message: `the process of ${this.name} failed: ${news.reason}` })
  }

  /** The adapter for the daemon, with data of the manifest. */
  provider({ bridge }: InstalledExtension['manifest']): BridgeProvider | undefined {
    if (!bridge) return undefined
    const { platform, display_name: displayName, description, secret_slots: secretSlots } = bridge
    return {
      extension: this.name,
      platform,
      displayName,
      ...(description === undefined ? {} : { description }),
      capabilities: {
        edits: bridge.edits,
        canSettle: bridge.can_settle,
        threads: bridge.threads,
        authenticatesSenders: bridge.authenticates_senders,
        typing: bridge.typing,
        textLimit: bridge.text_limit,
        textUnit: bridge.text_unit,
        fences: bridge.fences,
      },
      secretSlots,
      ...(bridge.config_schema === undefined ? {} : { configSchema: () => this.#read(bridge.config_schema) }),
      manage: (instances, host) => this.#manage(instances, host),
      deliver: (request, signal) => this.#deliver(request, signal),
      targets: (id, signal) => this.#targets(id, signal),
      ...(bridge.can_settle
        ? {
            settle: (request: DeliveryRequest & { readonly since: number }, signal: AbortSignal) =>
              this.#settle(request, signal),
          }
        : {}),
      verify: (id, signal) => this.#verify(id, signal),
      examine: (instance, signal) => this.#examinations.run(() => this.#examine(instance, signal)),
      registerWebhook: (id, signal) => this.#registerWebhook(id, signal),
    }
  }

  /** A text file of the extension; undefined if it cannot be read. */
  async #read(file = ''): Promise<string | undefined> {
    const { root } = this.extension() ?? {}
    if (root === undefined || file === '') return undefined
    try {
      return String(await readRegularFile(path.join(root, file), { maxBytes: SCHEMA_MAX, links: 'refuse' }))
    } catch (error) {
      this.kernel.log.warn(`the config schema of ${this.name} cannot be read: ${messageOf(error)}`)
      return undefined
    }
  }

  #manage(instances: readonly ManagedInstance[], host: BridgeHost): Promise<void> {
    return this.#changes.run(async () => {
      // Two logins of one account would interfere, so a running check of an enabled instance is aborted.
      for (let tried = this.#triedOf(instances); tried; tried = this.#triedOf(instances)) {
        tried.abort.abort(new Error('the bridge was enabled meanwhile'))
        await tried.done.catch(() => {})
      }
      this.host = instances.length > 0 ? host : undefined
      this.#managed = [...instances].sort((a, b) => (a.id < b.id ? -1 : 1))
      this.#wanted++
      await this.#apply()
    })
  }

  /** The running check of one of these instances. */
  #triedOf(instances: readonly ManagedInstance[]) {
    const examined = this.#examined
    return instances.some(({ id }) => id === examined?.instance.id) ? examined : undefined
  }

  /** Starts a process with one instance for a check, asks for its state, and stops it. */
  async #examine(instance: ManagedInstance, signal: AbortSignal): Promise<Examined> {
    const { current: extensions } = this.kernel.needs.extensions
    const key = this.extension()?.key
    if (!extensions || key === undefined)
      throw ExtensionErrors.extension_not_found(`no extension ${this.name} provides an adapter`)
    if (this.manages(instance.id)) throw BridgeErrors.bridge_transition('the bridge was enabled meanwhile')
    const examination = new Examination(this.kernel.clock, instance.id)
    const allowed = [...examination.methods.keys(), ...PASSES]
    const runtime = {
      members: this.#runtime('control', [instance], { allowed_methods: allowed }),
      secrets: secretsOf([instance]),
    }
    const launch = { runtime, methods: examination.methods, passes: PASSES }
    const abort = new AbortController()
    const either = AbortSignal.any([signal, abort.signal])
    const done = extensions.control(key, launch, process => examination.of(process), either)
    this.#examined = { instance, abort, done }
    return done.finally(() => {
      this.#examined = undefined
    })
  }

  /** Brings the process in line with the wanted set, or stops it. */
  async #apply(): Promise<void> {
    const { current: extensions } = this.kernel.needs.extensions
    const key = this.extension()?.key
    if (!extensions || key === undefined) return
    await extensions.reconsider(key)
    if (!this.isNeeded || this.#appliedVersion === this.#wanted) return
    if (this.#standing === 'given_up') await extensions.restart(key)
    else if (this.#standing === 'ready') await this.#hand(extensions, key)
  }

  /** Passes a changed set to the running process, or restarts it if it does not support that. */
  async #hand(extensions: ExtensionsApi, key: string): Promise<void> {
    if (!extensions.implements(key, SET)) return extensions.restart(key)
    const wanted = this.#wanted
    try {
      const params = { managed_instances: this.#managed.map(toWire) }
      await extensions.call(key, SET, params, { timeoutMs: SET_MS, secrets: secretsOf(this.#managed) })
      this.#appliedVersion = wanted
    } catch (error) {
      this.kernel.log.warn('an adapter did not accept its instances and is restarted', {
        extension: this.name,
        error: messageOf(error),
      })
      await extensions.restart(key)
    }
  }

  /** Applies a set that changed while the process was starting. */
  async #follow(): Promise<void> {
    await this.#changes
      .run(() => this.#apply())
      .catch(error => this.kernel.log.warn(`the process of ${this.name} does not run: ${messageOf(error)}`))
  }

  #report(state: StateReport): void {
    const { host } = this
    if (!host) return
    for (const { id } of this.#managed)
      void host.report(id, state).catch(error => {
        this.kernel.log.warn('the state of a bridge was not written', { bridge: id, error: messageOf(error) })
      })
  }

  async #deliver(request: DeliveryRequest, signal: AbortSignal): Promise<DeliveryResult> {
    try {
      const { output } = await this.#ask('bridges/deliver', { delivery: request }, Delivered, signal)
      if (output.status === 'not_sent') {
        const { retry_after_ms: retry, ...rest } = output
        return { ...rest, ...(typeof retry === 'number' ? { retry_after_ms: retry } : {}) }
      }
      if (output.status === 'unknown') return output
      return { status: 'delivered', ...remoteOf(output.remote_message_id) }
    } catch (error) {
      const { code, message } = faultOf(error)
      if (UNSENT.includes(code)) {
        return { status: 'not_sent', permanent: false, kind: 'transient_delivery_failure', message }
      }
      if (code === 'extension_method_missing') {
        return { status: 'not_sent', permanent: true, kind: 'unsupported_capability', message }
      }
      return { status: 'unknown', message }
    }
  }

  async #settle({ since, ...delivery }: DeliveryRequest & { readonly since: number }, signal: AbortSignal) {
    const { output } = await this.#ask('bridges/settle', { delivery, since }, Settled, signal)
    const settled: SettleResult =
      output.outcome === 'delivered'
        ? { outcome: 'delivered', ...remoteOf(output.remote_message_id) }
        : output.outcome === 'absent'
          ? { outcome: 'absent' }
          : { outcome: 'unknown', final: output.final === true }
    return settled
  }

  async #targets(instanceId: string, signal: AbortSignal): Promise<readonly SnapshotTarget[]> {
    const { output } = await this.#ask('bridges/targets/snapshot', { bridge_instance_id: instanceId }, Targets, signal)
    return output.targets.map(({ display_name, target_type, qualifier, capabilities, ...address }) => ({
      ...addressOf(address),
      display_name,
      target_type,
      ...(qualifier === undefined ? {} : { qualifier }),
      ...(capabilities === undefined ? {} : { capabilities }),
    }))
  }

  async #verify(instanceId: string, signal: AbortSignal): Promise<readonly VerifyCheck[]> {
    const method = 'bridges/verify'
    if (!this.#can(method)) return []
    return (await this.#ask(method, { bridge_instance_id: instanceId }, Verified, signal)).output.checks
  }

  async #registerWebhook(instanceId: string, signal: AbortSignal): Promise<VerifyCheck> {
    const method = 'bridges/webhook/register'
    if (!this.#can(method)) return { check: 'webhook', status: 'skipped', remediation: '' }
    return (await this.#ask(method, { bridge_instance_id: instanceId }, Checked, signal)).output
  }

  #can(method: string): boolean {
    const key = this.extension()?.key
    return key !== undefined && this.kernel.needs.extensions.current?.implements(key, method) === true
  }

  /** @throws Fault of the call; `bridge_answer_invalid` for a malformed answer, which is a fault of the extension */
  async #ask<S extends v.GenericSchema>(method: string, params: unknown, schema: S, signal: AbortSignal) {
    const { extensions, report } = this.kernel.needs
    const { key } = this.extension() ?? {}
    if (!extensions.current || key === undefined)
      throw ExtensionErrors.extension_not_found(`no extension ${this.name} provides an adapter`)
    const answer = await extensions.current.call(key, method, params, { signal })
    const parsed = v.safeParse(schema, answer)
    if (parsed.success) return { output: parsed.output as v.InferOutput<S> }
    const [issue] = parsed.issues
    const fault = BridgeErrors.bridge_answer_invalid(`the answer of ${this.name} to ${method}: ${issueLine(issue)}`)
    report(this.name, method, fault)
    throw fault
  }
}

const secretsOf = (managed: readonly ManagedInstance[]): string[] =>
  managed.flatMap(({ secrets }) => secrets.map(({ value }) => value))

const remoteOf = (id: string | null | undefined) => (typeof id === 'string' ? { remote_message_id: id } : {})

function addressOf(address: { [K in keyof BridgeAddress]: string | undefined }): BridgeAddress {
  return Object.fromEntries(Object.entries(address).filter(([, value]) => value !== undefined))
}

/** An instance in the form for the process. */
function toWire({ id, displayName, platform, workspaceId, providerConfig, dmPolicy, secrets }: ManagedInstance) {
  return {
    instance: {
      id,
      display_name: displayName,
      platform,
      scope: workspaceId === undefined ? 'global' : 'workspace',
      ...(workspaceId === undefined ? {} : { workspace_id: workspaceId }),
      provider_config: providerConfig,
      dm_policy: dmPolicy,
    },
    bound_secrets: secrets,
  }
}
