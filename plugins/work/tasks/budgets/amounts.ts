import type { BudgetAmounts } from '../../../../schemas/tasks.js'

/** Limitable dimensions: tokens, US dollars, and milliseconds for which runs are held. */
export const DIMENSIONS = ['tokens', 'cost', 'wall_ms'] as const
export type Dimension = (typeof DIMENSIONS)[number]

/** Used amounts. */
export type Amounts = { readonly [D in Dimension]: number }
/** Allowed amounts; null: unlimited. */
export type Limits = { readonly [D in Dimension]: number | null }

export const NOTHING: Amounts = { tokens: 0, cost: 0, wall_ms: 0 }
export const UNLIMITED: Limits = { tokens: null, cost: null, wall_ms: null }

const each = <T>(of: (dimension: Dimension) => T): { readonly [D in Dimension]: T } => ({
  tokens: of('tokens'),
  cost: of('cost'),
  wall_ms: of('wall_ms'),
})

export const plus = (a: Amounts, b: Amounts): Amounts => each(name => a[name] + b[name])

/** The unused part of a limit. */
export const leftOf = (limit: Limits, used: Amounts): Limits =>
  each(name => (limit[name] === null ? null : Math.max(0, limit[name] - used[name])))

/** The unused part of a reservation; 0 for an unlimited dimension. */
export const unusedOf = (cap: Limits, used: Amounts): Amounts =>
  each(name => Math.max(0, (cap[name] ?? used[name]) - used[name]))

/** The first exhausted dimension. */
export const usedUp = (limit: Limits, used: Amounts): Dimension | undefined =>
  DIMENSIONS.find(name => limit[name] !== null && used[name] >= limit[name])

/** The cap of one of several sharers: its usage so far and an equal share of the rest. */
export const shareOf = (left: Limits, used: Amounts, sharers: number): Limits =>
  each(name => (left[name] === null ? null : used[name] + left[name] / sharers))

/** The smaller limit of each dimension. */
export const least = (a: Limits, b: Limits): Limits =>
  each(name => (a[name] === null ? b[name] : b[name] === null ? a[name] : Math.min(a[name], b[name])))

export const toWire = ({ tokens, cost, wall_ms: wall }: Limits): BudgetAmounts => ({
  tokens: tokens === null ? null : Math.floor(tokens),
  cost_usd: cost === null ? null : Math.round(cost * 1e6) / 1e6,
  wall_seconds: wall === null ? null : Math.round(wall) / 1000,
})

const UNITS: { readonly [D in Dimension]: (amount: number) => string } = {
  tokens: amount => `${Math.floor(amount)} tokens`,
  cost: amount => `$${amount.toFixed(4)}`,
  wall_ms: amount => `${Math.round(amount / 1000)} s`,
}

/** `1200 tokens of 1000 tokens used`, for people. */
export const inWords = (name: Dimension, used: number, limit: number): string =>
  `${UNITS[name](used)} of ${UNITS[name](limit)} used`
