import { seededIds } from '../../../testing/seeded-ids.js'

/** When a job is due: a grid from its beginning, or minutes that the clocks of the zone show. */
export type Plan =
  | { readonly mode: 'every'; readonly minutes: number }
  | { readonly mode: 'cron'; readonly expr: string; readonly cron: Cron }

/** Undefined: any. `hour` and `minute` are single, as most people write them. */
export interface Cron {
  readonly minute: number
  readonly hour?: number | undefined
  readonly day?: number | undefined
  /** 0 is Sunday. */
  readonly weekday?: number | undefined
  /** 1 to 12; those in which clocks are changed. */
  readonly months?: readonly number[] | undefined
}

export interface PlannedJob {
  readonly id: string
  readonly plan: Plan
  readonly policy: 'skip_missed' | 'coalesce' | 'replay' | 'run_once_on_catchup'
  readonly graceSeconds: number
}

/** Jobs of chance, every policy in turn; hours of the night in which clocks are changed come often. */
export function randomJobs(count: number, seed: number): PlannedJob[] {
  const { random } = seededIds(seed)
  const below = (n: number) => Math.floor(random() * n)
  const one = <T>(...from: readonly T[]): T => from[below(from.length)] as T
  const plan = (): Plan => {
    const dice = below(4)
    if (dice === 0) return { mode: 'every', minutes: 60 * 24 * (1 + below(6)) + below(1440) }
    const minute = one(0, 15, 30, 45, below(60))
    const hour = one(0, 1, 2, 3, 23, below(24))
    const cron: Cron =
      dice === 1
        ? { minute, hour, weekday: one(0, 0, below(7)) }
        : dice === 2
          ? { minute, hour, day: 1 + below(28) }
          : { minute, weekday: 0, months: [3, 4, 9, 10] }
    const { hour: at = '*', day = '*', months = ['*'], weekday = '*' } = cron
    return { mode: 'cron', cron, expr: `${minute} ${at} ${day} ${months} ${weekday}` }
  }
  return Array.from({ length: count }, (_, n) => ({
    id: `job${n}`,
    plan: plan(),
    policy: (['skip_missed', 'coalesce', 'replay', 'run_once_on_catchup'] as const)[n % 4] as PlannedJob['policy'],
    graceSeconds: one(0, 60, 7200),
  }))
}
