import type { HeartbeatPreferences, TimeWindow } from '../../../schemas/agents/sidecars.js'

const MINUTE_MS = 60_000
const DAY_MINUTES = 24 * 60
/** Maximum step in minutes, so that two opposite clock changes cannot be skipped together. */
const LONGEST_STEP = 6 * 60
/**
 * Search range: windows repeat daily, so a schedule that is not open within eight days, with all clock changes, never
 * is.
 */
const SEARCH_MINUTES = 8 * DAY_MINUTES

/** The first whole minute at or after a time. */
const wholeMinute = (ms: number) => Math.ceil(ms / MINUTE_MS) * MINUTE_MS

/** Minutes of the day in time zones, from the platform's time zone data. */
export class ZoneClocks {
  readonly #formats = new Map<string, Intl.DateTimeFormat>()

  /** @param at epoch milliseconds */
  minuteOfDay(timezone: string, at: number): number {
    let format = this.#formats.get(timezone)
    if (!format) {
      const options = { timeZone: timezone, hourCycle: 'h23', hour: '2-digit', minute: '2-digit' } as const
      format = new Intl.DateTimeFormat('en-GB', options)
      this.#formats.set(timezone, format)
    }
    return minuteOf(format.format(at))
  }
}

const minuteOf = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5))

interface Window {
  readonly timezone: string
  /** Minutes of the day. */
  readonly start: number
  readonly end: number
}

/**
 * Times at which a policy may wake: within its active hours, if any, and outside its quiet windows. A window follows
 * the local clock: a repeated hour counts twice, a skipped one never.
 */
export class Schedule {
  readonly #active: readonly Window[]
  readonly #quiet: readonly Window[]

  constructor(
    { active_hours = [], quiet_windows = [] }: Pick<HeartbeatPreferences, 'active_hours' | 'quiet_windows'>,
    private readonly clocks: ZoneClocks,
  ) {
    this.#active = active_hours.map(windowOf)
    this.#quiet = quiet_windows.map(windowOf)
  }

  isOpen(at: number): boolean {
    const within = ({ timezone, start, end }: Window) => {
      const minute = this.clocks.minuteOfDay(timezone, at)
      return start < end ? start <= minute && minute < end : start <= minute || minute < end
    }
    return (this.#active.length === 0 || this.#active.some(within)) && !this.#quiet.some(within)
  }

  /** The first open whole minute from `from` on; undefined if there is none. */
  nextOpen(from: number): number | undefined {
    const last = from + SEARCH_MINUTES * MINUTE_MS
    for (let at = wholeMinute(from); at <= last; at += this.#step(at) * MINUTE_MS) if (this.isOpen(at)) return at
    return undefined
  }

  /** Minutes until a window begins or ends by the current local clocks; less if a clock change comes before. */
  #step(at: number): number {
    const windows = [...this.#active, ...this.#quiet]
    const clocks = new Map(windows.map(({ timezone }) => [timezone, this.clocks.minuteOfDay(timezone, at)]))
    let step = LONGEST_STEP
    for (const { timezone, start, end } of windows) {
      const minute = clocks.get(timezone) ?? 0
      for (const edge of [start, end]) step = Math.min(step, (edge - minute + DAY_MINUTES) % DAY_MINUTES || DAY_MINUTES)
    }
    const runOn = () =>
      [...clocks].every(
        ([timezone, minute]) =>
          this.clocks.minuteOfDay(timezone, at + step * MINUTE_MS) === (minute + step) % DAY_MINUTES,
      )
    while (step > 1 && !runOn()) step = Math.floor(step / 2)
    return step
  }
}

const windowOf = ({ timezone, start, end }: TimeWindow): Window => ({
  timezone,
  start: minuteOf(start),
  end: minuteOf(end),
})
