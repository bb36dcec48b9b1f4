import type { WebhookScheme } from '../../../../schemas/automation.js'

/** The headers of one delivery. */
export interface HeaderNames {
  readonly signature: string
  readonly timestamp?: string
  readonly id?: string
}

/** The signature scheme of a sender. All but `token` are HMAC-SHA256. */
export interface Scheme {
  readonly name: WebhookScheme
  readonly title: string
  /** Header names; the first family with a present signature is used. */
  readonly headers: readonly [HeaderNames, ...HeaderNames[]]
  /** `single`: one signature. `list`: several, separated by spaces. `pairs`: `t=<seconds>,v1=<signature>`. */
  readonly form: 'single' | 'list' | 'pairs'
  readonly prefix: string
  readonly encoding: 'hex' | 'base64'
  /** The signed text before the body, with the placeholders `{id}` and `{timestamp}` for values of the delivery. */
  readonly signed: string
  /** `whsec`: `whsec_` and base64. A secret of any other form is the key itself. */
  readonly secret: 'text' | 'whsec'
  /** A header with the secret itself, for deliveries without a signature. */
  readonly token?: string
  /** Member of the signed body with the time of the delivery in milliseconds. */
  readonly timeMember?: string
  /** Member of the signed body that stays the same when the sender repeats a delivery with another timestamp. */
  readonly idMember?: string
  /** The delivery ID is required because it is signed. */
  readonly needsId?: true
  /** Header with the ID of a delivery in which only the body is signed. */
  readonly deliveryId?: string
  readonly freshMs?: number
  /** Members that headers add to the event data. */
  readonly data?: Readonly<Record<string, string>>
  /** Marks a test delivery, which fires nothing unless the filter of the trigger includes tests. */
  readonly test?: { readonly member: string; readonly value: string }
  /** Marks a challenge delivery, whose reply is one of its members. */
  readonly challenge?: { readonly member: string; readonly value: string; readonly reply: string }
}

const STANDARD = { signature: 'Webhook-Signature', timestamp: 'Webhook-Timestamp', id: 'Webhook-Id' } as const
const standard = {
  form: 'list',
  prefix: 'v1,',
  encoding: 'base64',
  signed: '{id}.{timestamp}.',
  secret: 'whsec',
  needsId: true,
} as const
const bodyAlone = { form: 'single', prefix: '', encoding: 'hex', signed: '', secret: 'text' } as const

const table: readonly Scheme[] = [
  {
    name: 'service',
    title: 'the scheme of this daemon',
    headers: [
      {
        signature: 'X-Service-Webhook-Signature',
        timestamp: 'X-Service-Webhook-Timestamp',
        id: 'X-Service-Webhook-Delivery-Id',
      },
    ],
    ...bodyAlone,
    prefix: 'sha256=',
    signed: '{timestamp}.',
  },
  {
    name: 'standard',
    title: 'Standard Webhooks, Svix',
    headers: [STANDARD, { signature: 'Svix-Signature', timestamp: 'Svix-Timestamp', id: 'Svix-Id' }],
    ...standard,
  },
  {
    name: 'github',
    title: 'GitHub',
    headers: [{ signature: 'X-Hub-Signature-256' }],
    ...bodyAlone,
    prefix: 'sha256=',
    deliveryId: 'X-GitHub-Delivery',
    data: { github_event: 'X-GitHub-Event' },
    test: { member: 'github_event', value: 'ping' },
  },
  {
    name: 'gitlab',
    title: 'GitLab',
    headers: [STANDARD],
    ...standard,
    token: 'X-Gitlab-Token',
    deliveryId: 'Idempotency-Key',
    data: { gitlab_event: 'X-Gitlab-Event' },
  },
  {
    name: 'stripe',
    title: 'Stripe',
    headers: [{ signature: 'Stripe-Signature' }],
    ...bodyAlone,
    form: 'pairs',
    signed: '{timestamp}.',
    idMember: 'id',
  },
  {
    name: 'slack',
    title: 'Slack',
    headers: [{ signature: 'X-Slack-Signature', timestamp: 'X-Slack-Request-Timestamp' }],
    ...bodyAlone,
    prefix: 'v0=',
    signed: 'v0:{timestamp}:',
    idMember: 'event_id',
    challenge: { member: 'type', value: 'url_verification', reply: 'challenge' },
  },
  {
    name: 'linear',
    title: 'Linear',
    headers: [{ signature: 'Linear-Signature' }],
    ...bodyAlone,
    deliveryId: 'Linear-Delivery',
    timeMember: 'webhookTimestamp',
    freshMs: 60_000,
    data: { linear_event: 'Linear-Event' },
  },
  {
    name: 'sentry',
    title: 'Sentry',
    headers: [{ signature: 'Sentry-Hook-Signature' }],
    ...bodyAlone,
    deliveryId: 'Request-ID',
    data: { sentry_resource: 'Sentry-Hook-Resource' },
  },
]

/** Every scheme, by its name. */
export const schemes: ReadonlyMap<string, Scheme> = new Map(table.map(scheme => [scheme.name, scheme]))

/** All headers read by any scheme, without duplicates. */
export const schemeHeaders: readonly string[] = [
  ...new Set(
    table.flatMap(({ headers, token, deliveryId, data = {} }) => [
      ...headers.flatMap(names => Object.values(names) as string[]),
      ...[token, deliveryId].flatMap(name => name ?? []),
      ...Object.values(data),
    ]),
  ),
]
