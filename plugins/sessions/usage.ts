import type { SessionUsageReply } from '../../schemas/sessions.js'
import type { EventContent } from './events.js'

/** What the events up to a sequence say of tokens and cost; kept in the row, so that nobody reads a journal to count. */
export interface Usage {
  readonly sequence: number
  readonly turns: number
  readonly tokens: number | null
  readonly cost: { readonly amount: number; readonly currency: string } | null
}

export const NO_USAGE: Usage = { sequence: 0, turns: 0, tokens: null, cost: null }

/** Counts one event in. */
export function withEvent(usage: Usage, sequence: number, event: { type: string; content: EventContent }): Usage {
  const counted = { ...usage, sequence }
  if (event.type === 'user_message') return { ...counted, turns: usage.turns + 1 }
  if (event.type !== 'usage') return counted
  const told = (event.content.usage ?? {}) as { used?: unknown; cost?: { amount?: unknown; currency?: unknown } | null }
  const { amount, currency } = told.cost ?? {}
  return {
    ...counted,
    tokens: Number.isSafeInteger(told.used) ? (told.used as number) : usage.tokens,
    cost:
      typeof amount === 'number' ? { amount, currency: typeof currency === 'string' ? currency : 'USD' } : usage.cost,
  }
}

/** Of the column; nothing counted where it was written by an earlier version, or cannot be read. */
export function storedUsage(column: string | null): Usage {
  try {
    return { ...NO_USAGE, ...(JSON.parse(column ?? '{}') as Partial<Usage>) }
  } catch {
    return NO_USAGE
  }
}

/** What an agent did not tell is null, never guessed. */
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
