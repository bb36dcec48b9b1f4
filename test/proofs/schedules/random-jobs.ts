import { seededIds } from '../../../testing/seeded-ids.js'

/** When a job is due: a grid from its beginning, or minutes that the clocks of the zone show. */
export type Plan =
  | { readonly mode: 'every'; readonly minutes: number }
  | { readonly mode: 'cron'; readonly expr: string; readonly cron: Cron }

/** What an expression names, field by field. `isEach*`: the field begins with `*`. */
export interface Cron {
  readonly minutes: ReadonlySet<number>
  readonly hours: ReadonlySet<number>
  readonly days: ReadonlySet<number>
  /** 1 to 12. */
  readonly months: ReadonlySet<number>
  /** 0 is Sunday. */
  readonly weekdays: ReadonlySet<number>
  readonly isEachMinute: boolean
  readonly isEachHour: boolean
  readonly isEachDay: boolean
  readonly isEachWeekday: boolean
}

/** Reads five fields: numbers, lists, ranges, steps and `*`. */
export function cronOf(expr: string): Cron {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = expr.split(' ')
  const each = (field: string) => field.startsWith('*')
  return {
    minutes: numbers(minute, 0, 59),
    hours: numbers(hour, 0, 23),
    days: numbers(day, 1, 31),
    months: numbers(month, 1, 12),
    weekdays: new Set([...numbers(weekday, 0, 7)].map(n => n % 7)),
    isEachMinute: each(minute),
    isEachHour: each(hour),
    isEachDay: each(day),
    isEachWeekday: each(weekday),
  }
}

function numbers(field: string, least: number, most: number): Set<number> {
  const found = new Set<number>()
  for (const part of field.split(',')) {
    const [range = '', step = '1'] = part.split('/')
    const [from = '', to = from] = range === '*' ? [String(least), String(most)] : range.split('-')
    for (let n = +from; n <= +to; n += +step) found.add(n)
  }
  return found
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
    const minute = one('0', '15', '30', `${below(60)}`, '0,30', '10,40', '*/40', '5-55/25')
    const hour = one('0', '1', '2', '3', '23', `${below(24)}`, '2,14', '2-3', '0,23', '0-4/2', '*/8')
    const few = dice === 3
    // What is due on many days is so in the months in which clocks are changed alone: the daemon lives through each occurrence.
    const days = few
      ? '* 3,4,9,10 0'
      : one(`* * ${one(0, 0, below(7))}`, `${1 + below(28)} * *`, '1-4 3,10 0', '*/2 3,4,9,10 0', `25-31 3,10 */7`)
    const expr = `${minute} ${few ? '*' : hour} ${days}`
    return { mode: 'cron', cron: cronOf(expr), expr }
  }
  return Array.from({ length: count }, (_, n) => ({
    id: `job${n}`,
    plan: plan(),
    policy: (['skip_missed', 'coalesce', 'replay', 'run_once_on_catchup'] as const)[n % 4] as PlannedJob['policy'],
    graceSeconds: one(0, 60, 7200),
  }))
}
