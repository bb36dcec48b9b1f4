/** What a series may do from its middle third to its last. Every series has one rule; the first that matches its name holds. */
export type Rule =
  /** Its mean stays, up to this part of it and so much beside. */
  | { readonly flat: number; readonly within: number }
  /** It grows by design, up to this number: the one that its plugin keeps. */
  | { readonly most: number }
  /** It grows by design, by at most so much with each operation. */
  | { readonly perOperation: number }
  /** It grows by design, by at most so much with each day of the daemon's clock. */
  | { readonly perDay: number; readonly within: number }

/** Rows and files of what has no rule of its own. */
const FLAT: Rule = { flat: 0.1, within: 25 }

/**
 * Processes and the home. Numbers of docs/retention.md are the bounds of what a plugin keeps by number; what it keeps by age is flat,
 * for the clock of the daemon moves by days between two samples.
 */
export const RULES: readonly (readonly [name: RegExp, rule: Rule])[] = [
  [/^process rss$/, { flat: 0.05, within: 8 }],
  // Code that first runs after some rounds, such as that of the archives, adds a few MiB once; the leaks that are planted add 11 in three minutes.
  [/^process heap$/, { flat: 0.04, within: 4 }],
  // An archive that is open at some samples has a database in memory of its own.
  [/^process external$/, { flat: 0.05, within: 8 }],
  [/^process handles$/, { flat: 0.02, within: 3 }],
  // Sessions that run at the moment of a sample have some each; a leak of one per operation is a hundred in three minutes.
  [/^process descriptors$/, { flat: 0.02, within: 8 }],
  [/^process (children|zombies)$/, { flat: 0, within: 0.5 }],
  // 400 days, or 100,000 entries.
  [/^table audit_entry$/, { perOperation: 3 }],
  // Reports of 100 crashed agents, and the logs.
  [/^files logs\/$/, { most: 110 }],
  // 1,000 of each job and trigger.
  [/^table automation_run$/, { perOperation: 0.1 }],
  [/^table audit_checkpoint$/, { perDay: 1, within: 10 }],
  [/^table kernel_event_day$/, { perDay: 60, within: 100 }],
  [/^table (observe_day|observe_hour)$/, { perDay: 60, within: 100 }],
  [/^table sessions_usage_day$/, { perDay: 10, within: 25 }],
  [/^table changes_change$/, { most: 232 }],
  [/^table settings_apply$/, { most: 1000 }],
  [/^table hooks_run$/, { most: 50_000 }],
  [/^table notifications_notice$/, { most: 1000 }],
  // A row of 30 bytes for each task in the archive.
  [/^table tasks_archived_task$/, { perOperation: 1 }],
  [/^(file|bytes) (archives|audit)\b/, { perOperation: 20_000 }],
  [/^bytes /, { flat: 0.25, within: 2_000_000 }],
]

export function ruleOf(name: string): Rule {
  return RULES.find(([pattern]) => pattern.test(name))?.[1] ?? FLAT
}

/** One look at the daemon at rest. */
export interface Sample {
  /** Seconds since the load began. */
  readonly at: number
  /** Operations of the load until then. */
  readonly operations: number
  /** Days by which the clock of the daemon moved until then. */
  readonly days: number
  readonly values: Readonly<Record<string, number>>
}

export interface Verdict {
  readonly name: string
  readonly rule: Rule
  /** Means of the middle and the last third. */
  readonly middle: number
  readonly last: number
  /** What the rule allows the last third. */
  readonly allowed: number
  readonly holds: boolean
}

/** Holds each series to its rule. The first third is the warm-up. */
export function judge(samples: readonly Sample[]): Verdict[] {
  const third = Math.floor(samples.length / 3)
  const [middle, last] = [samples.slice(third, 2 * third), samples.slice(2 * third)]
  if (third === 0) throw new Error(`${samples.length} samples are too few to compare`)
  const mean = (of: readonly Sample[], value: (sample: Sample) => number) =>
    of.reduce((sum, sample) => sum + value(sample), 0) / of.length
  const names = new Set(samples.flatMap(({ values }) => Object.keys(values)))
  return [...names].map(name => {
    const [before, after] = [middle, last].map(of => mean(of, ({ values }) => values[name] ?? 0)) as [number, number]
    const grown = (value: (sample: Sample) => number) => mean(last, value) - mean(middle, value)
    const rule = ruleOf(name)
    const allowed = allowedOf(rule, before, grown)
    return { name, rule, middle: before, last: after, allowed, holds: after <= allowed }
  })
}

function allowedOf(rule: Rule, before: number, grown: (value: (sample: Sample) => number) => number): number {
  if ('flat' in rule) return before * (1 + rule.flat) + rule.within
  if ('most' in rule) return rule.most
  if ('perOperation' in rule) return before + rule.perOperation * grown(({ operations }) => operations)
  return (
    before +
    rule.within +
    rule.perDay *
      Math.max(
        0,
        grown(({ days }) => days),
      )
  )
}

/** A rule in a few words, for the table. */
export function ruleText(rule: Rule): string {
  if ('flat' in rule) return 'flat'
  if ('most' in rule) return `at most ${rule.most}`
  if ('perOperation' in rule) return `${rule.perOperation} an operation`
  return `${rule.perDay} a day`
}
