/** What the documents say of heartbeats, minute by minute and without any cleverness; shares no code with the product. */
const MINUTE = 60_000

export interface OracleWindow {
  readonly timezone: string
  /** `HH:MM` */
  readonly start: string
  readonly end: string
}

export interface OraclePolicy {
  readonly id: string
  readonly intervalMinutes: number
  readonly active: readonly OracleWindow[]
  readonly quiet: readonly OracleWindow[]
}

export interface OracleWake {
  readonly id: string
  readonly at: number
}

/** `HH:MM` as the clocks of a zone show it. */
export class Clocks {
  readonly #formats = new Map<string, Intl.DateTimeFormat>()

  show(timezone: string, at: number): string {
    let format = this.#formats.get(timezone)
    if (!format) {
      format = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short', timeStyle: 'short' })
      this.#formats.set(timezone, format)
    }
    return format.format(at).slice(-5)
  }
}

export function isAllowed(
  { active, quiet }: Pick<OraclePolicy, 'active' | 'quiet'>,
  at: number,
  clocks: Clocks,
): boolean {
  const within = ({ timezone, start, end }: OracleWindow) => {
    const now = clocks.show(timezone, at)
    return start < end ? now >= start && now < end : now >= start || now < end
  }
  return (active.length === 0 || active.some(within)) && !quiet.some(within)
}

/** Every wake-up of sessions that were all made at `start`, at most `cap` a minute, those with smaller ids first. */
export function simulate(policies: readonly OraclePolicy[], start: number, days: number, cap: number): OracleWake[] {
  const clocks = new Clocks()
  const sorted = [...policies].sort((a, b) => (a.id < b.id ? -1 : 1))
  const notBefore = new Map(sorted.map(({ id, intervalMinutes }) => [id, start + intervalMinutes * MINUTE]))
  const wakes: OracleWake[] = []
  const first = Math.ceil(start / MINUTE) * MINUTE
  for (let at = first; at <= start + days * 24 * 60 * MINUTE; at += MINUTE) {
    let sent = 0
    let beyond = 0
    for (const policy of sorted) {
      if (at < (notBefore.get(policy.id) as number) || !isAllowed(policy, at, clocks)) continue
      if (sent < cap) {
        sent++
        wakes.push({ id: policy.id, at })
        notBefore.set(policy.id, at + policy.intervalMinutes * MINUTE)
      } else notBefore.set(policy.id, at + Math.ceil(++beyond / cap) * MINUTE)
    }
  }
  return wakes
}
