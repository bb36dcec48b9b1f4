import * as v from 'valibot'
import type { BridgeProvider, InboundEvent } from '../api.js'
import type { Instance } from '../instances/instances.js'

const names = v.fallback(v.array(v.string()), [])
const people = { allow_user_ids: names, allow_usernames: names }
/** The members of `provider_config` that control who may speak. The adapter uses the others. */
const Config = v.object({
  dm: v.fallback(v.object({ ...people, paired_user_ids: names, paired_usernames: names }), {
    ...{ allow_user_ids: [], allow_usernames: [], paired_user_ids: [], paired_usernames: [] },
  }),
  group: v.fallback(
    v.object({
      reply: v.fallback(v.picklist(['addressed', 'all']), 'addressed'),
      allow_user_ids: v.fallback(v.optional(v.array(v.string())), undefined),
      allow_usernames: v.fallback(v.optional(v.array(v.string())), undefined),
    }),
    { reply: 'addressed', allow_user_ids: undefined, allow_usernames: undefined },
  ),
  approvers: v.fallback(v.object({ user_ids: names }), { user_ids: [] }),
  routing: v.fallback(v.object({ fallback: v.fallback(v.boolean(), false) }), { fallback: false }),
})

type Sender = InboundEvent['sender']

/** Whether the sender of an event may prompt. `reason`: why not; `pairing`: the sender may request pairing. */
export type Judgement =
  | { readonly may: true }
  | { readonly may: false; readonly reason: string; readonly pairing?: true }

const no = (reason: string): Judgement => ({ may: false, reason })

/** Decides who may speak to an agent through an instance, for all platforms. */
export function judge(
  { dmPolicy, providerConfig }: Pick<Instance, 'dmPolicy' | 'providerConfig'>,
  provider: Pick<BridgeProvider, 'capabilities'> | undefined,
  event: InboundEvent,
): Judgement {
  const { dm, group } = v.parse(Config, providerConfig)
  const { sender } = event
  if (event.automatic) return no('automatic')
  const isNamed = sender.authenticated || provider?.capabilities.authenticatesSenders === false
  if (event.group_id !== undefined) {
    if (!event.addressed && group.reply !== 'all') return no('not_addressed')
    const { allow_user_ids: ids, allow_usernames: usernames } = group
    if (ids === undefined && usernames === undefined) return { may: true }
    return isNamed && isIn(sender, ids ?? [], usernames ?? []) ? { may: true } : no('sender_not_allowed')
  }
  if (!isNamed) return no('sender_not_authenticated')
  if (dmPolicy === 'open') return { may: true }
  if (isIn(sender, dm.allow_user_ids, dm.allow_usernames)) return { may: true }
  if (dmPolicy === 'allowlist') return no('sender_not_allowed')
  return isIn(sender, dm.paired_user_ids, dm.paired_usernames)
    ? { may: true }
    : { may: false, reason: 'sender_not_paired', pairing: true }
}

/**
 * Whether a sender may answer an agent's questions. The operator must have named them and the platform must have
 * identified them.
 */
export function mayApprove(
  { providerConfig }: Pick<Instance, 'providerConfig'>,
  provider: Pick<BridgeProvider, 'capabilities'> | undefined,
  sender: Sender,
): boolean {
  const { approvers } = v.parse(Config, providerConfig)
  return (
    provider?.capabilities.authenticatesSenders === true &&
    sender.authenticated &&
    approvers.user_ids.includes(sender.id)
  )
}

/** Whether anyone may answer questions in the chat. */
export function hasApprovers({ providerConfig }: Pick<Instance, 'providerConfig'>): boolean {
  return v.parse(Config, providerConfig).approvers.user_ids.length > 0
}

/** Whether an event without some part of the routing policy still gets a conversation. */
export const fallsBack = ({ providerConfig }: Pick<Instance, 'providerConfig'>): boolean =>
  v.parse(Config, providerConfig).routing.fallback

const isIn = ({ id, username }: Sender, ids: readonly string[], usernames: readonly string[]): boolean =>
  ids.includes(id) || (username !== undefined && usernames.includes(username))
