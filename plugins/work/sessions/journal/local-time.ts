const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
/** In every zone of recent decades, offsets change at multiples of this. */
const SLOT_MS = 900_000
/** Slots with a cached offset; a year has 35,040. */
const MAX_SLOTS = 4096

/**
 * The calendar of a time zone: local days, which have 23 or 25 hours when clocks change, and local hours, which in some zones do
 * not start at the hour of UTC.
 */
export class LocalTime {
  #format: Intl.DateTimeFormat | 'process' | undefined
  readonly #offsets = new Map<number, number>()

  /** @param zone a name like `Europe/Paris`; default, also for unknown names: the zone of the process */
  constructor(private readonly zone?: string) {}

  /** `YYYY-MM-DD` of an instant in epoch milliseconds. */
  day(at: number): string {
    return new Date(at + this.#offset(at)).toISOString().slice(0, 10)
  }

  /** The start of the local hour of an instant. */
  hourStart(at: number): number {
    const local = at + this.#offset(at)
    return at - (((local % HOUR_MS) + HOUR_MS) % HOUR_MS)
  }

  /** Hour of the day, 0 to 23, and day of the week, 0 for Sunday. */
  hourAndWeekday(at: number): { readonly hour: number; readonly weekday: number } {
    const local = new Date(at + this.#offset(at))
    return { hour: local.getUTCHours(), weekday: local.getUTCDay() }
  }

  /** The last `count` days up to that of an instant, oldest first. */
  daysTo(at: number, count: number): string[] {
    const last = Date.parse(this.day(at))
    return Array.from({ length: count }, (_, n) => dayText(last - (count - 1 - n) * DAY_MS))
  }

  /** The start of a day, `YYYY-MM-DD`. */
  dayStart(day: string): number {
    const midnight = Date.parse(day)
    // The offset at midnight is needed. One step finds it, unless clocks change in between; then the second step does.
    let at = midnight - this.#offset(midnight)
    at = midnight - this.#offset(at)
    // Where clocks go forward at midnight, the day begins later.
    return this.day(at) < day ? this.#firstOf(day, at) : at
  }

  #firstOf(day: string, after: number): number {
    let at = after - (after % SLOT_MS)
    while (this.day(at) < day) at += SLOT_MS
    return at
  }

  #offset(at: number): number {
    const slot = Math.floor(at / SLOT_MS)
    const known = this.#offsets.get(slot)
    if (known !== undefined) return known
    const found = this.#find(slot * SLOT_MS)
    if (this.#offsets.size >= MAX_SLOTS) this.#offsets.clear()
    this.#offsets.set(slot, found)
    return found
  }

  /** The format loads 6 MiB of language data, so the zone of the process is read without it. */
  #find(at: number): number {
    this.#format ??= formatOf(this.zone?.replace(/^:/, '')) ?? 'process'
    if (this.#format === 'process') return -new Date(at).getTimezoneOffset() * MINUTE_MS
    return offsetOf(this.#format, at)
  }
}

const dayText = (at: number): string => new Date(at).toISOString().slice(0, 10)

const PARTS: Intl.DateTimeFormatOptions = {
  ...({ year: 'numeric', month: 'numeric', day: 'numeric' } as const),
  ...({ hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' } as const),
}

/** Undefined for an unknown zone, such as the rule `CET-1CEST`. */
function formatOf(timeZone: string | undefined): Intl.DateTimeFormat | undefined {
  if (!timeZone) return undefined
  try {
    return new Intl.DateTimeFormat('en-US', { ...PARTS, timeZone })
  } catch {
    return undefined
  }
}

/** Local time minus UTC, in milliseconds. */
function offsetOf(format: Intl.DateTimeFormat, at: number): number {
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
  return Date.UTC(year, month - 1, day, hour, minute, second) - at
}
