import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import { type Actor, iso, messageOf, within } from '../../../../kernel/plugin.js'
import type {
  BridgeTestTarget,
  RegisterWebhookReply,
  SendTestBody,
  SendTestReply,
  TestDeliveryBody,
  TestDeliveryReply,
  VerifyBridgeReply,
} from '../../../../schemas/bridges.js'
import { type BridgeAddress, BridgeErrors, type VerifyCheck } from '../api.js'
import type { K } from '../needs.js'
import type { Adapters } from './adapters.js'
import { routeOf } from './addresses.js'
import type { ConfigCheck } from './config-check.js'
import type { Instance, Instances } from './instances.js'
import { type ProofsApart, proveApart } from './proofs-apart.js'
import type { Secrets } from './secrets.js'
import type { TestMessages } from './test-messages.js'

/** Milliseconds for an adapter's checks. */
const CHECK_MS = 15_000
const CHECKS_MAX = 20

/** Outcome of a message that is sent and awaited. */
export type SendOutcome =
  | { readonly status: 'delivered'; readonly remoteId?: string | undefined }
  | { readonly status: 'unknown'; readonly message: string }
  | { readonly status: 'failed'; readonly message: string; readonly permanent: boolean }

/** Tests an instance: test messages and checks. */
export class Trials {
  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
    private readonly secrets: Secrets,
    private readonly adapters: Adapters,
    private readonly messages: Pick<TestMessages, 'send'>,
    private readonly configs: ConfigCheck,
  ) {}

  /**
   * Target of a message without sending it. @throws Fault `bridge_not_found`, `bridge_target_invalid`,
   * `bridge_not_ready`
   */
  testDelivery(id: string, { target, message }: TestDeliveryBody, actor: Actor): TestDeliveryReply {
    const instance = this.#enabled(id, actor)
    const address = addressOf(instance, target)
    return {
      delivery_target: targetOf(instance, address, target),
      ...(message === undefined ? {} : { message }),
      status: this.instances.accepts(id) ? 'deliverable' : instance.status,
    }
  }

  /** @throws Fault `bridge_not_found`, `bridge_target_invalid`, `bridge_not_ready`, `bridge_send_failed` */
  async sendTest(id: string, { target, message }: SendTestBody, actor: Actor): Promise<SendTestReply> {
    const instance = this.#enabled(id, actor)
    const address = addressOf(instance, target)
    if (!this.instances.accepts(id)) {
      throw BridgeErrors.bridge_not_ready(`the bridge is ${instance.status}, and sends when it is ready`, {
        next: command('bridge verify', id),
      })
    }
    const deliveryId = this.kernel.ids.id('dlv')
    const outcome = await this.messages.send(instance, address, message, deliveryId)
    if (outcome.status === 'failed') {
      throw BridgeErrors.bridge_send_failed(`${routeOf(address)}: ${outcome.message}`, {
        next: outcome.permanent ? command('bridge targets', id) : command('bridge verify', id),
      })
    }
    return {
      bridge_instance_id: id,
      delivery_id: deliveryId,
      delivery_target: targetOf(instance, address, target),
      ...(outcome.status === 'delivered'
        ? { status: 'delivered', ...(outcome.remoteId === undefined ? {} : { remote_message_id: outcome.remoteId }) }
        : { status: 'committed_result_unavailable', error: { message: outcome.message } }),
    }
  }

  /**
   * Runs the five checks of the daemon and those of the adapter, which tests a disabled bridge without serving it.
   * @throws Fault `bridge_not_found`
   */
  async verify(id: string, actor: Actor, signal: AbortSignal): Promise<VerifyBridgeReply> {
    const instance = this.instances.getVisible(id, actor)
    const configuration = await this.#configuration(instance)
    const apart = instance.enabled ? undefined : await this.#apart(instance, configuration, signal)
    const own = [
      apart?.configuration ?? configuration,
      apart?.process ?? this.#process(instance),
      apart?.transport ?? this.#transport(instance),
      this.#inbound(instance),
      this.#outbound(instance),
    ].map(check => this.#plain(check))
    return { bridge_instance_id: id, checks: [...own, ...(apart?.others ?? (await this.#ofAdapter(instance, signal)))] }
  }

  /** @throws Fault `bridge_not_found`, `bridge_not_ready` */
  async registerWebhook(id: string, actor: Actor, signal: AbortSignal): Promise<RegisterWebhookReply> {
    const instance = this.#enabled(id, actor)
    const provider = this.instances.providerOf(instance)
    const reply = ({ status, remediation }: Pick<VerifyCheck, 'status' | 'remediation'>) => ({
      bridge_instance_id: id,
      status,
      remediation,
    })
    if (!provider?.registerWebhook)
      return reply({ status: 'skipped', remediation: `the platform ${instance.platform} registers no webhook` })
    try {
      return reply(this.#plain(await within(this.kernel.clock, CHECK_MS, provider.registerWebhook(id, signal))))
    } catch (error) {
      return reply(this.#plain({ check: 'webhook', status: 'fail', remediation: messageOf(error) }))
    }
  }

  #enabled(id: string, actor: Actor): Instance {
    const instance = this.instances.getVisible(id, actor)
    if (instance.enabled) return instance
    throw BridgeErrors.bridge_not_ready('the bridge is disabled', { next: command('bridge enable', id) })
  }

  async #configuration(instance: Instance): Promise<VerifyCheck> {
    const { id, extension, platform, providerConfig, dmPolicy } = instance
    const check = 'configuration'
    const provider = this.instances.providerOf(instance)
    if (!provider) {
      const next = command('extension list')
      return {
        check,
        status: 'fail',
        remediation: `the extension ${extension} with the platform ${platform} does not run: ${next}`,
      }
    }
    const [slot] = this.secrets.missing(instance)
    if (slot !== undefined)
      return {
        check,
        status: 'fail',
        remediation: `the secret ${slot} is not bound: ${command('bridge secret-bindings put', id, slot)}`,
      }
    const problem = await this.configs.problem(provider, providerConfig)
    if (problem)
      return {
        check,
        status: 'fail',
        remediation:
          problem.of === 'config'
            ? `${problem.text}: correct it in --provider-config of ${command('bridge update', id)}`
            : `${problem.text}: ${command('extension info', provider.extension)}`,
      }
    if (dmPolicy !== 'open' && !namesAnybody(providerConfig.dm))
      return {
        check,
        status: 'warn',
        remediation: `dm_policy is ${dmPolicy} but provider_config.dm allows no user: add ids to dm.allow_user_ids with ${command('bridge update', id)}`,
      }
    return { check, status: 'pass', remediation: '' }
  }

  async #apart(instance: Instance, configuration: VerifyCheck, signal: AbortSignal): Promise<ProofsApart | undefined> {
    const provider = this.instances.providerOf(instance)
    const reveal = () => this.secrets.reveal(instance.id)
    const proofs = await proveApart(instance, configuration, provider, reveal, signal)
    return proofs && { ...proofs, others: proofs.others.slice(0, CHECKS_MAX).map(check => this.#plain(check)) }
  }

  #process({ id, enabled, status }: Instance): VerifyCheck {
    const check = 'process'
    if (!enabled)
      return { check, status: 'fail', remediation: `the bridge is disabled: ${command('bridge enable', id)}` }
    if (this.adapters.runs(id)) return { check, status: 'pass', remediation: '' }
    const why = this.instances.state(id)?.message ?? `the bridge is ${status}`
    return {
      check,
      status: 'fail',
      remediation: `the adapter does not run it (${why}); restart it: ${command('bridge restart', id)}`,
    }
  }

  #transport({ id, status }: Instance): VerifyCheck {
    const check = 'transport'
    if (status === 'ready') return { check, status: 'pass', remediation: '' }
    const why = this.instances.state(id)?.message ?? `the bridge is ${status}`
    if (status === 'disabled')
      return { check, status: 'fail', remediation: `the bridge is disabled: ${command('bridge enable', id)}` }
    if (status === 'starting')
      return {
        check,
        status: 'fail',
        remediation: `the adapter has not connected yet; wait and verify again: ${command('bridge verify', id)}`,
      }
    if (status === 'auth_required')
      return {
        check,
        status: 'fail',
        remediation: `${why}; bind the secret anew: ${command('bridge secret-bindings put', id, placeholder('slot'))}`,
      }
    return {
      check,
      status: status === 'degraded' ? 'warn' : 'fail',
      remediation: `${why}: ${command('bridge restart', id)}`,
    }
  }

  #inbound({ id, enabled }: Instance): VerifyCheck {
    const check = 'inbound'
    const { inboundAt } = this.instances.state(id) ?? {}
    if (inboundAt !== undefined)
      return { check, status: 'pass', remediation: `the latest event was received at ${iso(inboundAt)}` }
    if (!enabled)
      return {
        check,
        status: 'fail',
        remediation: `no event was ever received, and none is accepted while the bridge is disabled; enable it: ${command('bridge enable', id)}`,
      }
    return {
      check,
      status: 'fail',
      remediation: `no event was ever received: send the bot a direct message, then verify again: ${command('bridge verify', id)}`,
    }
  }

  #outbound({ id, enabled }: Instance): VerifyCheck {
    const check = 'outbound'
    const { outboundAt, lastSuccessAt } = this.instances.state(id) ?? {}
    if (outboundAt !== undefined)
      return { check, status: 'pass', remediation: `the platform confirmed a message at ${iso(outboundAt)}` }
    if (lastSuccessAt !== undefined) {
      const remediation = `a message was sent at ${iso(lastSuccessAt)}, but the platform returned no id: check whether it arrived`
      return { check, status: 'warn', remediation }
    }
    if (!enabled)
      return {
        check,
        status: 'fail',
        remediation: `the platform never confirmed a message, and none is sent while the bridge is disabled; enable it: ${command('bridge enable', id)}`,
      }
    return {
      check,
      status: 'fail',
      remediation: `the platform never confirmed a message; send one: ${command('bridge send-test', id, '--message', 'hello')}`,
    }
  }

  async #ofAdapter(instance: Instance, signal: AbortSignal): Promise<VerifyCheck[]> {
    const provider = this.instances.providerOf(instance)
    if (!provider?.verify || !this.adapters.runs(instance.id)) return []
    try {
      const checks = await within(this.kernel.clock, CHECK_MS, provider.verify(instance.id, signal))
      return checks.slice(0, CHECKS_MAX).map(check => this.#plain(check))
    } catch (error) {
      return [this.#plain({ check: 'adapter', status: 'fail', remediation: `its checks failed: ${messageOf(error)}` })]
    }
  }

  /** A check of an adapter with secrets redacted. */
  #plain({ check, status, remediation }: VerifyCheck): VerifyCheck {
    const { redact } = this.kernel
    return { check: redact.text(String(check), 64), status, remediation: redact.text(String(remediation ?? ''), 1000) }
  }
}

/** Address of a test message. @throws Fault `bridge_target_invalid` */
function addressOf({ id, deliveryDefaults }: Instance, target: BridgeTestTarget): BridgeAddress {
  if (target.bridge_instance_id !== undefined && target.bridge_instance_id !== id)
    throw BridgeErrors.bridge_target_invalid(
      `target.bridge_instance_id: ${shown(target.bridge_instance_id)} is another bridge`,
    )
  const isNamed = target.peer_id !== undefined || target.group_id !== undefined
  if (!isNamed && target.thread_id !== undefined)
    throw BridgeErrors.bridge_target_invalid('target.thread_id: needs peer_id or group_id')
  const { peer_id, group_id, thread_id } = isNamed ? target : (deliveryDefaults ?? {})
  if (peer_id === undefined && group_id === undefined)
    throw BridgeErrors.bridge_target_invalid('target: has no peer or group, and the bridge has no delivery defaults', {
      next: command('bridge targets', id),
    })
  return {
    ...(peer_id === undefined ? {} : { peer_id }),
    ...(group_id === undefined ? {} : { group_id }),
    ...(thread_id === undefined ? {} : { thread_id }),
  }
}

const targetOf = ({ id, deliveryDefaults }: Instance, address: BridgeAddress, { mode }: BridgeTestTarget) => ({
  bridge_instance_id: id,
  ...address,
  mode: mode ?? deliveryDefaults?.mode ?? ('direct-send' as const),
})

/** Whether any list of the direct message policy has entries. */
const namesAnybody = (dm: unknown): boolean =>
  Object.values(Object(dm) as Record<string, unknown>).some(list => Array.isArray(list) && list.length > 0)
