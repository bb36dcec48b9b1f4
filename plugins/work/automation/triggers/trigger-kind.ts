import * as v from 'valibot'
import { secretRef } from '../../../../kernel/kit/secret-ref.js'
import { shown, text } from '../../../../kernel/kit/text.js'
import { kind, type RecordScope, type StoredRecord } from '../../../../kernel/plugin.js'
import { FireLimit, LoopTarget, Retry, WebhookScheme } from '../../../../schemas/automation.js'
import { mapOf } from '../../../../schemas/kernel/map-of.js'
import { decodeAs, identityProblem, isLoop, type JobProblem, limitsProblem, loopProblem } from '../job-kind.js'
import { schemes } from '../webhooks/scheme-table.js'
import { templateProblem } from './prompt-template.js'

/** Spec of a record of kind `automation.trigger`, decoded leniently: unknown members are dropped. */
export const TriggerSpec = v.object({
  id: v.optional(v.string()),
  name: text(200),
  scope: v.optional(v.picklist(['user', 'global', 'workspace'])),
  workspace_id: v.optional(v.string()),
  target_kind: v.optional(v.picklist(['', 'agent', 'loop'])),
  agent_name: v.optional(text(128, 0)),
  prompt: v.optional(v.string()),
  event: text(200),
  filter: v.nullish(mapOf(v.string(), v.string())),
  enabled: v.optional(v.boolean(), true),
  fire_limit: v.nullish(v.object(FireLimit.entries)),
  retry: v.nullish(v.object(Retry.entries)),
  loop_target: v.nullish(v.object(LoopTarget.entries)),
  endpoint_slug: v.optional(text(128, 0)),
  webhook_id: v.optional(text(128, 0)),
  webhook_secret_ref: v.optional(text(512, 0)),
  /** A repeated body is accepted under a new delivery ID; for schemes that sign only the body. */
  webhook_allow_repeat: v.optional(v.boolean()),
  /** Signature scheme of deliveries; default `service`. */
  webhook_scheme: v.optional(WebhookScheme),
})
export type TriggerSpec = v.InferOutput<typeof TriggerSpec>

/** A stored trigger. */
export type TriggerRecord = StoredRecord<TriggerSpec>

/** Events that fire a trigger. */
const EVENT =
  /^(?:session\.(?:created|stopped)|automation\.run\.(?:completed|failed)|memory\.consolidated|webhook|hook\.[^.\s][^\s]*\.completed|ext\.[^.\s][^\s]*)$/
const FILTER_KEY = /^(?:kind|scope|workspace_id|source|data(?:\.[^.\s]+)+)$/
const Reference = secretRef({ env: '', vault: 'automation/' })
const SLUG = /^[a-z0-9]+(?:-[a-z0-9]+)*$/

/** Checks the rules for triggers that the schema cannot express; `undefined` when all hold. */
export function triggerProblem(spec: TriggerSpec, scope: RecordScope): JobProblem | undefined {
  const text =
    limitsProblem(spec) ??
    (EVENT.test(spec.event)
      ? undefined
      : `event: unknown event ${shown(spec.event)}; use session.created, session.stopped, automation.run.completed, automation.run.failed, hook.<name>.completed, ext.<extension>.<name> or webhook`) ??
    webhookProblem(spec) ??
    filterProblem(spec.filter ?? {})
  if (text !== undefined) return { of: 'job', text }
  if (isLoop(spec)) return loopProblem(spec, scope, 'trigger')
  if (spec.loop_target) return { of: 'job', text: 'loop_target: not allowed with target_kind agent' }
  if (!spec.agent_name) return { of: 'job', text: 'agent_name: required' }
  if (!spec.prompt?.trim()) return { of: 'job', text: 'prompt: required' }
  const wrong = templateProblem(spec.prompt)
  return wrong === undefined ? undefined : { of: 'job', text: `prompt: ${wrong}` }
}

function webhookProblem({
  event,
  endpoint_slug,
  webhook_id,
  webhook_secret_ref,
  webhook_scheme,
  webhook_allow_repeat,
}: TriggerSpec): string | undefined {
  if (event !== 'webhook') {
    const own = Object.entries({
      endpoint_slug,
      webhook_id,
      webhook_secret_ref,
      webhook_scheme,
      webhook_allow_repeat,
    }).find(([, value]) => value)
    return own && `${own[0]}: only allowed with event webhook`
  }
  if (!endpoint_slug && !webhook_id) return 'endpoint_slug: a webhook requires endpoint_slug or webhook_id'
  if (endpoint_slug && !SLUG.test(endpoint_slug))
    return 'endpoint_slug: must be lower-case letters and digits separated by single hyphens'
  // 22 characters of 6 bits hold the 128 random bits of a generated one.
  if (webhook_id && !/^wbh_\w{22,}$/.test(webhook_id))
    return 'webhook_id: must be wbh_ and at least 22 random letters, digits and _; leave it out to have one generated'
  if (webhook_allow_repeat && schemes.get(webhook_scheme ?? 'service')?.deliveryId === undefined)
    return `webhook_allow_repeat: not for scheme ${webhook_scheme ?? 'service'}, which signs more than the body; its deliveries are never equal`
  if (!webhook_secret_ref) return 'webhook_secret_ref: a webhook requires a secret: env:NAME or vault:automation/…'
  if (!v.is(Reference, webhook_secret_ref)) return 'webhook_secret_ref: must be env:NAME or vault:automation/…'
  return undefined
}

function filterProblem(filter: Readonly<Record<string, string>>): string | undefined {
  for (const [key, value] of Object.entries(filter)) {
    if (!FILTER_KEY.test(key))
      return `filter: unknown key ${shown(key)}; use kind, scope, workspace_id, source or data.<name>`
    if (value === '') return `filter.${key}: must not be empty`
  }
  return undefined
}

/** Vault path of a secret passed as `webhook_secret_value`. */
export const secretPath = (id: string) => `automation/triggers/${id}`

/** The record kind of triggers. */
export const TriggerKind = kind<TriggerSpec>({
  name: 'automation.trigger',
  spec: TriggerSpec,
  maxBytes: 256 * 1024,
  check: ({ id, scope, spec }) => identityProblem(id, scope, spec) ?? triggerProblem(spec, scope)?.text,
})

export const decodeTrigger = (record: StoredRecord | undefined): TriggerRecord | undefined =>
  decodeAs(TriggerSpec, record)
