import * as v from 'valibot'
import { issueLine } from '../../../../kernel/kit/issue-text.js'
import { BridgeErrors } from '../api.js'

/** Ids and names from a platform. */
const name = v.pipe(v.string(), v.minLength(1), v.maxLength(512))
const words = v.pipe(v.string(), v.maxLength(4000))
/** Maximum number of characters in an inbound text. */
const MAX_TEXT = 1024 * 1024
const id = v.pipe(v.string(), v.minLength(1), v.maxLength(256))

const address = { peer_id: v.optional(name), group_id: v.optional(name), thread_id: v.optional(name) }
const milliseconds = v.pipe(v.number(), v.minValue(0), v.maxValue(8.64e15))
const remote = v.optional(v.nullable(name))

/** Reply to `bridges/deliver`. A reply without a status is an acknowledgement. */
export const Delivered = v.union([
  v.variant('status', [
    v.object({ status: v.literal('delivered'), remote_message_id: remote }),
    v.object({
      status: v.literal('not_sent'),
      permanent: v.boolean(),
      kind: v.picklist([
        'unknown_destination',
        'missing_token',
        'permission_denied',
        'unsupported_capability',
        'transient_delivery_failure',
      ]),
      message: words,
      retry_after_ms: v.optional(v.nullable(milliseconds)),
    }),
    v.object({ status: v.literal('unknown'), message: words }),
  ]),
  v.object({ status: v.optional(v.undefined()), remote_message_id: name }),
])

/** Reply to `bridges/settle`. */
export const Settled = v.variant('outcome', [
  v.object({ outcome: v.literal('delivered'), remote_message_id: remote }),
  v.object({ outcome: v.literal('absent') }),
  v.object({ outcome: v.literal('unknown'), final: v.optional(v.boolean()) }),
])

/** Reply to `bridges/targets/snapshot`. */
export const Targets = v.object({
  targets: v.pipe(
    v.array(
      v.object({
        ...address,
        display_name: name,
        target_type: v.pipe(v.string(), v.minLength(1), v.maxLength(64)),
        qualifier: v.optional(name),
        capabilities: v.optional(v.pipe(v.array(v.pipe(v.string(), v.maxLength(64))), v.maxLength(64))),
      }),
    ),
    v.maxLength(10_000),
  ),
})

/** Reply to `bridges/webhook/register`. Also a single check in the reply to `bridges/verify`. */
export const Checked = v.object({
  check: v.pipe(v.string(), v.minLength(1), v.maxLength(128)),
  status: v.picklist(['pass', 'warn', 'fail', 'skipped']),
  remediation: v.optional(words, ''),
})

/** Reply to `bridges/verify`. */
export const Verified = v.object({ checks: v.pipe(v.array(Checked), v.maxLength(100)) })

/** Parameters of `bridges/instances/report_state`. */
export const ReportParams = v.strictObject({
  bridge_instance_id: id,
  status: v.picklist(['starting', 'ready', 'degraded', 'auth_required', 'error']),
  reason: v.optional(
    v.picklist(['auth_failed', 'rate_limited', 'webhook_invalid', 'provider_timeout', 'tenant_config_invalid']),
  ),
  message: v.optional(words),
  webhook_public_url: v.optional(v.pipe(v.string(), v.url(), v.maxLength(2048))),
})

/** Parameters of `bridges/deliveries/report`. */
export const DeliveryReportParams = v.strictObject({
  bridge_instance_id: id,
  remote_message_id: name,
  status: v.literal('failed'),
  reason: words,
})

/** Parameters of `bridges/messages/ingest`. */
export const IngestParams = v.strictObject({
  bridge_instance_id: id,
  idempotency_key: name,
  family: v.picklist(['message', 'edit', 'command', 'action', 'reaction']),
  sender: v.strictObject({
    id: name,
    username: v.optional(name),
    display_name: v.optional(name),
    authenticated: v.boolean(),
    is_bot: v.optional(v.boolean()),
  }),
  ...address,
  message_id: v.optional(name),
  reply_to_message_id: v.optional(name),
  text: v.optional(v.pipe(v.string(), v.maxLength(MAX_TEXT))),
  action_id: v.optional(name),
  addressed: v.boolean(),
  automatic: v.optional(v.boolean()),
  received_at: v.optional(milliseconds),
  attachments: v.optional(
    v.pipe(
      v.array(
        v.strictObject({
          name,
          mime_type: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
          data: v.pipe(v.string(), v.base64()),
        }),
      ),
      v.maxLength(20),
    ),
  ),
})

/** @throws Fault `bridge_event_invalid` */
export function checked<S extends v.GenericSchema>(schema: S, params: unknown): v.InferOutput<S> {
  const parsed = v.safeParse(schema, params)
  if (parsed.success) return parsed.output
  const [issue] = parsed.issues
  throw BridgeErrors.bridge_event_invalid(`${issueLine(issue, 'parameters')}`)
}

/** Removes undefined members. */
export function defined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T
}
