import { createHash, hash } from 'node:crypto'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { History } from '../../../../kernel/kit/history.js'
import { TokenBucket } from '../../../../kernel/kit/rate.js'
import { parseSecretRef, resolveSecret } from '../../../../kernel/kit/secret-ref.js'
import { clip } from '../../../../kernel/kit/text.js'
import { type Actor, Fault, iso, messageOf, type Tx, turn } from '../../../../kernel/plugin.js'
import type { WebhookReply } from '../../../../schemas/automation.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import { finding } from '../../../desk/daemon/api.js'
import { AutomationErrors } from '../api.js'
import type { K } from '../needs.js'
import { EveryNth } from '../runs/every-nth.js'
import { runToWire } from '../runs/run-wire.js'
import { type Envelope, placeOf } from '../triggers/envelope.js'
import { type FireWork, promptOf, runId } from '../triggers/fires.js'
import { matches } from '../triggers/match.js'
import type { TriggerRecord } from '../triggers/trigger-kind.js'
import { membersOf } from './body.js'
import { type Scheme, schemes } from './scheme-table.js'
import { FRESH_MS, type Headers, isOf, isSigned, readSigned, signedHeaders, timedBody } from './schemes.js'

/** Rate limit per webhook, counting refused deliveries. */
const DELIVERIES = { burst: 60, perSecond: 10 }
/** Rate limits kept for unknown endpoints, so that the limit does not reveal which endpoints exist. */
const UNKNOWN_ENDPOINTS = 1000
/** Replay keys kept per webhook, two per delivery: more cannot arrive within the freshness window. */
const REMEMBERED = 20_000
/** Prune the replay keys of a webhook once per this many deliveries. */
const PRUNED_EVERY = 100
/** Minimum time between two sweeps of expired replay keys, in milliseconds. */
const SWEPT_MS = 1000
/** Webhooks whose secret doctor looks at. */
const CHECKED = 100
/** Refusals that anybody can cause at any rate, made once: the stack of an error costs as much as reading the stored key. */
const FORGED = AutomationErrors.webhook_signature_invalid()
const REPLAYED = AutomationErrors.webhook_replayed()

export const deliveryTable = `CREATE TABLE automation_webhook_delivery (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, trigger_id TEXT NOT NULL, key TEXT NOT NULL, until INTEGER NOT NULL,
    UNIQUE (trigger_id, key)
  ) STRICT;
  CREATE INDEX automation_webhook_delivery_until ON automation_webhook_delivery (until);
  CREATE INDEX automation_webhook_delivery_trigger ON automation_webhook_delivery (trigger_id, seq);`

type DeliveryRow = { readonly seq: number; readonly trigger_id: string; readonly key: string; readonly until: number }
/** A delivery as received. */
export interface Delivery {
  readonly workspaceId?: string
  /** `<slug>--<webhook id>`, or the id alone. */
  readonly endpoint: string
  readonly headers: Headers
  readonly body: Buffer
  readonly actor: Actor
  /** Id of the HTTP request. */
  readonly cause: string
}

/** The result of a delivery; `challenge` is the expected reply to a challenge. */
export type Accepted = WebhookReply['result'] & { readonly challenge?: string }

/** Accepts signed deliveries. Each delivery fires its trigger once. */
export class Webhooks {
  readonly #known = new Map<string, TokenBucket>()
  readonly #unknown = new Map<string, TokenBucket>()
  readonly #history: History<DeliveryRow>
  readonly #pruning = new EveryNth(PRUNED_EVERY)
  #sweptAt = Number.NEGATIVE_INFINITY

  constructor(
    private readonly kernel: K,
    private readonly work: FireWork,
  ) {
    this.#history = new History(kernel.db, { table: 'automation_webhook_delivery' })
  }

  /**
   * Resolves when the run is durable. Throws 404 for an unknown or disabled webhook, 429 before any signature is computed, 400
   * and 401 for missing or invalid signatures, 409 for a duplicate, and 409 when a limit is reached (the delivery may be retried).
   */
  async deliver(delivery: Delivery): Promise<Accepted> {
    let trigger = this.#find(delivery)
    this.#pass(trigger, delivery)
    for (;;) {
      if (!trigger) throw AutomationErrors.webhook_not_found()
      const taken = await this.#take(trigger, delivery)
      if (taken) return taken
      trigger = this.#find(delivery)
    }
  }

  /**
   * A delivery that this trigger would accept, signed now; nothing is delivered, and the secret stays here. Throws 404, 400
   * `trigger_not_webhook`, 400 `webhook_secret_missing`, 400 `webhook_headers_invalid` for a body without room for the time.
   */
  async sample(trigger: TriggerRecord, path: string | undefined, text: string | undefined) {
    const { spec } = trigger
    if (path === undefined) throw AutomationErrors.trigger_not_webhook()
    const scheme = schemes.get(spec.webhook_scheme ?? 'service') as Scheme
    const at = this.kernel.clock.now()
    const id = this.kernel.ids.id('test')
    const body = timedBody(scheme, text ?? JSON.stringify({ test: true, delivery: id }), at)
    const filter = Object.entries(spec.filter ?? {}).map(([key, value]) => [key.replace(/^data\./, ''), value])
    const draft = { secret: await this.#secret(trigger), body, at, id, data: Object.fromEntries(filter) }
    const headers = { 'Content-Type': 'application/json', ...signedHeaders(scheme, draft) }
    const fresh = scheme.freshMs ?? FRESH_MS
    return {
      path,
      headers,
      body,
      expires_at: scheme.signed === '' && scheme.timeMember === undefined ? null : iso(at + fresh),
    }
  }

  /** Accepts one delivery; undefined, with nothing written, when the trigger changed after it was read. */
  async #take(trigger: TriggerRecord, delivery: Delivery): Promise<Accepted | undefined> {
    const now = this.kernel.clock.now()
    const { headers, body } = delivery
    const { spec } = trigger
    const scheme = schemes.get(spec.webhook_scheme ?? 'service') as Scheme
    let parsed: ReturnType<typeof membersOf> | undefined
    // Parsed late: most forged and repeated deliveries are refused without.
    const members = () => {
      parsed ??= membersOf(body.toString(), headers['content-type'])
      return parsed
    }
    const allowRepeat = spec.webhook_allow_repeat === true
    const signed = readSigned(scheme, { headers, body, members, now, allowRepeat })
    if (!isSigned(signed, await this.#secret(trigger))) throw FORGED
    if (signed.at !== undefined && Math.abs(now - signed.at) > signed.freshMs) throw stale(signed.freshMs)
    if (scheme.challenge && isOf(scheme.challenge, members()))
      return { matched: 0, runs: [], ...challengeOf(scheme, members()) }
    if (!this.work.enabled) throw AutomationErrors.automation_disabled()
    const envelope = (): Envelope => ({
      kind: 'webhook',
      source: 'webhook',
      ...placeOf(trigger.scope.id),
      data: this.#data(trigger, delivery, { ...members(), ...signed.data }, signed.at ?? now),
    })
    // A test delivery starts an agent only if the filter of the trigger includes tests.
    const isTest = isOf(scheme.test, signed.data) && !(`data.${scheme.test?.member}` in (spec.filter ?? {}))
    const keys = signed.keys.map(key => hash('sha256', key))
    const fires = !isTest && (!spec.filter || matches(trigger, envelope()))
    // A duplicate is refused by a read: a transaction that is undone would cost as much as a run.
    if (fires && this.#isKnown(trigger.id, keys, now) && this.#find(delivery)?.id === trigger.id) throw REPLAYED
    const refusal = await this.kernel.needs.disk.refusal()
    if (refusal) throw refusal
    await this.kernel.needs.daemon.admit('automation run')
    const taken = await this.kernel.db.tx(t => {
      const present = this.#find(delivery)
      if (present?.id !== trigger.id || present.version !== trigger.version) return undefined
      // A delivery without a match is not remembered: after a fix of the filter, the sender can repeat it.
      if (!fires) return {}
      this.#once(t, trigger.id, keys, signed.until)
      const id = runId(trigger.id, `webhook|${keys[0]}|${signed.until}`)
      // The keys had expired and the clock was set back: the run ID still identifies the duplicate.
      if (!this.work.claims.room(trigger, { triggerId: trigger.id }, id)) throw REPLAYED
      const { prompt, skip } = promptOf(trigger, envelope(), 1)
      const { actor, cause } = delivery
      const metadata = { activation: 'webhook' }
      const fire = { id, prompt, skip, actor, cause, depth: 1, metadata, hasRoom: true }
      return { run: this.work.claims.fired(t, trigger, fire) }
    })
    if (!taken) return undefined
    const { run } = taken
    // Dispatch after the reply: the reply would wait for the writes of the dispatch.
    if (run?.status === 'scheduled') void turn().then(() => this.work.dispatch(run, trigger))
    return { matched: run ? 1 : 0, runs: run ? [runToWire(run)] : [] }
  }

  /** The trigger of a delivery; undefined when it is disabled or slug, scope or workspace differ. */
  #find({ endpoint, workspaceId }: Delivery): TriggerRecord | undefined {
    const at = endpoint.lastIndexOf('--')
    const [slug, webhookId] = at < 0 ? ['', endpoint] : [endpoint.slice(0, at), endpoint.slice(at + 2)]
    const trigger = this.work.triggers.ofWebhook(webhookId)
    const { spec, scope } = trigger ?? {}
    const isIt = spec?.event === 'webhook' && (spec.endpoint_slug ?? '') === slug && scope?.id === workspaceId
    return trigger && isIt && this.work.triggers.enabled(trigger) ? trigger : undefined
  }

  #pass(trigger: TriggerRecord | undefined, { workspaceId = '', endpoint }: Delivery): void {
    const [buckets, key] = trigger
      ? [this.#known, trigger.id]
      : [this.#unknown, `${workspaceId}/${clip(endpoint, 300)}`]
    const bucket = buckets.get(key) ?? new TokenBucket(DELIVERIES, this.kernel.clock)
    buckets.delete(key)
    buckets.set(key, bucket)
    const [oldest] = buckets.keys()
    if (buckets.size > UNKNOWN_ENDPOINTS && oldest !== undefined) buckets.delete(oldest)
    if (!bucket.tryTake(1)) throw AutomationErrors.webhook_rate_limit(undefined, { retryAfter: 1 })
  }

  /**
   * A fingerprint with which an owner can recognise the secret of a trigger; undefined without a secret. It contains the ID, so
   * that equal secrets of two triggers do not show.
   */
  async secretHash({ id, spec }: TriggerRecord): Promise<string | undefined> {
    if (!spec.webhook_secret_ref) return undefined
    const secret = await resolveSecret(this.kernel, spec.webhook_secret_ref, 'the secret').catch(() => undefined)
    return secret && `sha256:${createHash('sha256').update(`${id}\n${secret}`).digest('hex')}`
  }

  /** Doctor items for enabled webhooks whose secret cannot be read: each delivery would be refused. */
  async findings(): Promise<DiagnosticItem[]> {
    const { triggers } = this.work
    const webhooks = triggers.ofEvent('webhook').filter(trigger => triggers.enabled(trigger))
    const items = webhooks.slice(0, CHECKED).map(trigger =>
      this.#reveal(trigger).then(
        () => [],
        (error: unknown) => [unreadable(trigger, error)],
      ),
    )
    return (await Promise.all(items)).flat()
  }

  #reveal({ id, spec }: TriggerRecord): Promise<string> {
    return resolveSecret(this.kernel, spec.webhook_secret_ref ?? '', `webhook_secret_ref of trigger ${id}`)
  }

  async #secret(trigger: TriggerRecord): Promise<string> {
    try {
      return await this.#reveal(trigger)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      const { id } = trigger
      // The sender must not learn where the secret is stored.
      this.kernel.log.warn(`refused a delivery to trigger ${id}: ${error.message}`, { trigger: id })
      throw AutomationErrors.webhook_secret_missing()
    }
  }

  /** Whether a replay key is stored and has not expired. */
  #isKnown(trigger: string, keys: readonly string[], now: number): boolean {
    const sql = 'SELECT 1 FROM automation_webhook_delivery WHERE trigger_id = ? AND key = ? AND until >= ?'
    return keys.some(key => this.kernel.db.row(sql, [trigger, key, now]) !== undefined)
  }

  /** Stores the replay keys. Throws 409 `webhook_replayed`. */
  #once(t: Tx, trigger: string, keys: readonly string[], until: number): void {
    const now = this.kernel.clock.now()
    // Expired keys are refused by their timestamp anyway, so a sweep per second suffices. abs(): the clock may be set back.
    if (Math.abs(now - this.#sweptAt) >= SWEPT_MS) {
      t.run('DELETE FROM automation_webhook_delivery WHERE until < ?', [now])
      this.#sweptAt = now
    }
    for (const key of keys) {
      const { changes } = t.run(
        `INSERT INTO automation_webhook_delivery (trigger_id, key, until) VALUES (?, ?, ?)
         ON CONFLICT (trigger_id, key) DO NOTHING`,
        [trigger, key, until],
      )
      if (changes === 0) throw REPLAYED
    }
    // Pruning scans all kept keys.
    if (this.#pruning.due(trigger)) this.#history.prune(t, { trigger_id: trigger }, { newest: REMEMBERED })
  }

  #data({ spec }: TriggerRecord, { endpoint, body }: Delivery, members: Readonly<Record<string, unknown>>, at: number) {
    return {
      payload: body.toString(),
      ...members,
      endpoint,
      endpoint_slug: spec.endpoint_slug ?? '',
      webhook_id: endpoint.slice(endpoint.lastIndexOf('--') < 0 ? 0 : endpoint.lastIndexOf('--') + 2),
      timestamp: iso(at),
    }
  }
}

function unreadable({ id, spec }: TriggerRecord, error: unknown): DiagnosticItem {
  const why = error instanceof Fault ? error.message : messageOf(error)
  const { scheme } = parseSecretRef(spec.webhook_secret_ref ?? '') ?? {}
  return finding({
    id: `trigger:${id}:secret`,
    code: 'webhook_secret_missing',
    category: 'automation',
    severity: 'warning',
    title: `the secret of webhook ${spec.name} cannot be read`,
    message: `${why}; each delivery is refused`,
    suggested_command:
      scheme === 'vault' ? command('vault put', spec.webhook_secret_ref ?? '') : command('automation triggers get', id),
  })
}

function stale(freshMs: number): Fault {
  const minutes = freshMs / 60_000
  const most = minutes === 1 ? '1 minute' : `${minutes} minutes`
  return AutomationErrors.webhook_stale(`the delivery timestamp differs from the current time by more than ${most}`)
}

/** The reply with which an endpoint proves to the sender that it is the right one. */
function challengeOf({ challenge }: Scheme, members: Readonly<Record<string, unknown>>): { challenge?: string } {
  const value = members[challenge?.reply ?? '']
  return typeof value === 'string' ? { challenge: clip(value, 1000) } : {}
}
