import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { issueLine } from '../../../kernel/kit/issue-text.js'
import { clip } from '../../../kernel/kit/text.js'
import { Capability, PeerCard } from '../../../schemas/network/channels.js'
import { type Envelope, MessageKind, WorkState } from '../../../schemas/network/messages.js'

export const PROTOCOL = 'svc-network/v1'

/** Reasons for a refusal. */
export const REASONS = [
  'malformed',
  'expired',
  'duplicate',
  'unsupported_kind',
  'unsupported_profile',
  'verification_failed',
  'not_target',
  'not_found',
  'busy',
  'internal',
  'invalid_surface',
  'conversation_not_found',
  'work_closed',
  'work_container_mismatch',
  'legacy_field_rejected',
] as const
export type Reason = (typeof REASONS)[number]

/** A refusal with its explanation. */
export interface Refusal {
  readonly reason: Reason
  readonly message: string
}

const refused = (reason: Reason, message: string): Refusal => ({ reason, message })

/** Maximum bytes of an envelope as JSON. */
export const MAX_BYTES = 1024 * 1024
export const MAX_MENTIONS = 64

const ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
export const PEER = /^[a-z0-9][a-z0-9._-]{0,127}$/
export const CHANNEL = /^[a-z0-9][a-z0-9_-]{0,63}$/
const THREAD = /^thread_[a-z0-9][a-z0-9_-]{2,95}$/
const DIRECT = /^direct_[a-f0-9]{32}$/
/** Mention of all peers of the channel. */
export const EVERYONE = 'channel'

/** Members of earlier protocol versions; refused by name, because they would be ignored. */
const LEGACY: ReadonlySet<string> = new Set([
  'type',
  'payload',
  'interaction_id',
  'room_id',
  'conversation_id',
  'content',
])

const text = v.pipe(v.string(), v.trim(), v.minLength(1))
const ReceiptStatus = v.picklist(['accepted', 'rejected', 'duplicate', 'expired', 'unsupported', 'canceled'])
/** Receipts that need no reason. */
const UNREASONED: ReadonlySet<string> = new Set(['accepted', 'canceled'])

/** Body and further requirements of each kind. */
const KINDS = {
  greet: {
    contained: false,
    work: 'none',
    body: v.looseObject({ peer_card: PeerCard, summary: v.optional(v.string()) }),
  },
  whois: {
    contained: false,
    work: 'none',
    body: v.variant('type', [
      v.looseObject({ type: v.literal('request'), query: v.optional(v.string()) }),
      v.looseObject({ type: v.literal('response'), peer_card: PeerCard }),
    ]),
  },
  say: {
    contained: true,
    work: 'optional',
    body: v.looseObject({ text, intent: v.optional(v.string()), artifacts: v.optional(v.array(v.unknown())) }),
  },
  capability: {
    contained: true,
    work: 'required',
    body: v.looseObject({ ...Capability.entries }),
  },
  receipt: {
    contained: true,
    work: 'required',
    body: v.looseObject({
      for_id: v.pipe(v.string(), v.regex(ID)),
      status: ReceiptStatus,
      reason_code: v.optional(v.picklist(REASONS)),
    }),
  },
  trace: {
    contained: true,
    work: 'required',
    body: v.looseObject({
      state: v.pipe(
        WorkState,
        v.check(state => state !== 'submitted', 'work cannot change back to submitted'),
      ),
      message: v.optional(v.string()),
      result: v.optional(v.unknown()),
      artifact_refs: v.optional(v.array(v.unknown())),
    }),
  },
} as const satisfies Record<
  MessageKind,
  { contained: boolean; work: 'none' | 'optional' | 'required'; body: v.GenericSchema }
>

/** An envelope of this version. */
export interface JudgedEnvelope extends Envelope {
  readonly kind: MessageKind
}

/** Id of the room of two sessions. */
export function directIdOf(workspaceId: string, channel: string, one: string, other: string): string {
  const name = ['svc/direct-room/v1', workspaceId, channel, ...[one, other].sort()].join('\0')
  return `direct_${createHash('sha256').update(name).digest('hex').slice(0, 32)}`
}

/** Channel of a run, derived from its id. */
export function derivedChannel(strategy: 'run' | 'loop_run', id: string): string {
  const prefix = strategy === 'run' ? 'coord' : 'loop'
  const hex = createHash('sha256').update(id).digest('hex').slice(0, 12)
  const stem = clip(
    id
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-+|-+$/g, ''),
    64 - prefix.length - hex.length - 2,
  )
  return `${prefix}-${stem || 'id'}-${hex}`
}

type Raw = Readonly<Record<string, unknown>>
const present = (value: unknown): boolean => value !== undefined && value !== null

/**
 * Checks everything in an envelope that does not depend on the channel: format, freshness, surface and body, in this
 * order. Returns the first problem.
 * @param now epoch milliseconds
 * @param maxAgeMs maximum age of a message without `expires_at`; undefined: any
 */
export function judge(raw: Raw, now: number, maxAgeMs?: number): Refusal | undefined {
  return (
    grammarOf(raw) ??
    freshnessOf(raw as unknown as Envelope, now, maxAgeMs) ??
    surfaceOf(raw as unknown as JudgedEnvelope) ??
    bodyOf(raw as unknown as JudgedEnvelope)
  )
}

function grammarOf(raw: Raw): Refusal | undefined {
  for (const name of Object.keys(raw))
    if (LEGACY.has(name)) return refused('legacy_field_rejected', `${name} is not supported in any current version`)
  if (raw.kind === 'direct') return refused('legacy_field_rejected', 'direct is a surface, not a kind')
  if (raw.protocol !== PROTOCOL) return refused('unsupported_profile', `protocol: expected ${PROTOCOL}`)
  const required: readonly (readonly [string, RegExp])[] = [
    ['id', ID],
    ['channel', CHANNEL],
    ['from', PEER],
  ]
  for (const [name, pattern] of required)
    if (typeof raw[name] !== 'string' || !pattern.test(raw[name])) return refused('malformed', `${name}: not valid`)
  const optional: readonly (readonly [string, RegExp])[] = [
    ['to', PEER],
    ['reply_to', ID],
    ['trace_id', ID],
    ['causation_id', ID],
    ['work_id', ID],
    ['thread_id', THREAD],
    ['direct_id', DIRECT],
  ]
  for (const [name, pattern] of optional) {
    const value = raw[name]
    if (present(value) && (typeof value !== 'string' || !pattern.test(value)))
      return refused('malformed', `${name}: not valid`)
  }
  if (!Number.isSafeInteger(raw.ts)) return refused('malformed', 'ts: expected Unix seconds')
  if (present(raw.expires_at) && !Number.isSafeInteger(raw.expires_at))
    return refused('malformed', 'expires_at: expected Unix seconds')
  const { mentions } = raw
  if (mentions !== undefined) {
    const whole =
      Array.isArray(mentions) &&
      mentions.length <= MAX_MENTIONS &&
      mentions.every(one => typeof one === 'string' && PEER.test(one))
    if (!whole) return refused('malformed', `mentions: expected at most ${MAX_MENTIONS} peers`)
  }
  if (!v.is(MessageKind, raw.kind))
    return refused('unsupported_kind', `kind: expected ${MessageKind.options.join(', ')}`)
  if (typeof raw.body !== 'object' || raw.body === null || Array.isArray(raw.body))
    return refused('malformed', 'body: expected an object')
  return undefined
}

function freshnessOf({ ts, expires_at: expires }: Envelope, now: number, maxAgeMs?: number): Refusal | undefined {
  if (present(expires) && (expires as number) * 1000 <= now) return refused('expired', 'it expired before it arrived')
  if (!present(expires) && maxAgeMs !== undefined && now - ts * 1000 > maxAgeMs)
    return refused('expired', `it is older than ${maxAgeMs / 1000} s`)
  return undefined
}

function surfaceOf(envelope: JudgedEnvelope): Refusal | undefined {
  const { kind, surface, thread_id: thread, direct_id: direct, work_id: work, to, reply_to: replyTo } = envelope
  const { contained, work: works } = KINDS[kind]
  const is = surface ?? undefined
  if (!contained && (is !== undefined || present(thread) || present(direct)))
    return refused('invalid_surface', `${kind} belongs to no thread and no direct room`)
  if (contained && is !== 'thread' && is !== 'direct')
    return refused('invalid_surface', `${kind} needs surface: thread or direct`)
  if (contained && (is === 'thread') !== present(thread))
    return refused('invalid_surface', 'thread_id is required for surface thread and not allowed otherwise')
  if (contained && (is === 'direct') !== present(direct))
    return refused('invalid_surface', 'direct_id is required for surface direct and not allowed otherwise')
  if (works === 'none' && present(work)) return refused('malformed', `${kind} has no work_id`)
  if (works === 'required' && !present(work)) return refused('malformed', `${kind} needs work_id`)
  const needsTo = kind === 'capability' || (kind === 'say' && present(work))
  if (needsTo && !present(to)) return refused('malformed', `${kind} with work_id needs to`)
  if (kind === 'greet' && present(to))
    return refused('malformed', 'greet is addressed to the whole channel: it must not have to')
  const { type } = envelope.body as { readonly type?: unknown }
  if (kind === 'whois' && type === 'response' && !present(replyTo))
    return refused('malformed', 'a response needs reply_to')
  return undefined
}

function bodyOf({ kind, body, from }: JudgedEnvelope): Refusal | undefined {
  const read = v.safeParse(KINDS[kind].body as v.GenericSchema, body)
  if (!read.success) return refused('malformed', `body of ${kind}: ${issueLine(read.issues[0])}`)
  const { peer_card: card, status, reason_code: reason } = body as Raw
  if (card !== undefined && (card as PeerCard).peer_id !== from)
    return refused('malformed', 'peer_card.peer_id has to be the sender')
  if (kind !== 'receipt') return undefined
  if (status === 'accepted' && reason !== undefined) return refused('malformed', 'accepted has no reason_code')
  if (!UNREASONED.has(`${status}`) && reason === undefined) return refused('malformed', `${status} needs reason_code`)
  return undefined
}
