import * as v from 'valibot'
import type { SessionUsageReply } from '../../../../schemas/sessions.js'
import type { EventContent } from '../../acp/api.js'
import type { SessionUse } from './uses.js'

/** Turns, tokens and cost according to the events. */
export const Usage = v.object({
  turns: v.number(),
  tokens: v.nullable(v.number()),
  cost: v.nullable(v.object({ amount: v.number(), currency: v.string() })),
})
export type Usage = Readonly<v.InferOutput<typeof Usage>>

export const NO_USAGE: Usage = { turns: 0, tokens: null, cost: null }

/** Usage for other plugins. Cost in another currency than USD is null, because limits cannot be compared with it. */
export const useOf = ({ tokens, cost }: Omit<Usage, 'turns'>): SessionUse => ({
  tokens,
  cost: cost?.currency === 'USD' ? cost.amount : null,
})

/** Adds one event. An invalid number counts as not reported. */
export function withEvent(usage: Usage, event: { readonly type: string; readonly content: EventContent }): Usage {
  if (event.type === 'user_message') return { ...usage, turns: usage.turns + 1 }
  if (event.type !== 'usage') return usage
  const report = (event.content.usage ?? {}) as {
    used?: unknown
    cost?: { amount?: unknown; currency?: unknown } | null
  }
  const { amount, currency } = report.cost ?? {}
  return {
    ...usage,
    tokens: Number.isSafeInteger(report.used) && Number(report.used) >= 0 ? Number(report.used) : usage.tokens,
    cost:
      Number.isFinite(amount) && Number(amount) >= 0
        ? { amount: Number(amount), currency: typeof currency === 'string' ? currency : 'USD' }
        : usage.cost,
  }
}

/** Usage on the wire. Values that an agent did not report are null, never estimated. */
export function usageToWire({ turns, tokens, cost }: Usage): SessionUsageReply['usage'] {
  return {
    turn_count: turns,
    input_tokens: null,
    output_tokens: null,
    total_tokens: tokens,
    total_cost: cost?.amount ?? null,
    ...(cost && { cost_currency: cost.currency }),
    cost_source: cost ? 'agent_reported' : 'none',
    cost_status: cost ? 'actual' : 'unknown',
  }
}
