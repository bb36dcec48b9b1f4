const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
/** Offsets change at instants that are multiples of this in every zone of the last decades. */
const SLOT_MS = 900_000
/** Slots whose offset is remembered; a year has 35,040. */
const MAX_SLOTS = 4096

/**
 * The calendar of a time zone: the days of people, which have 23 or 25 hours when clocks change, and hours that begin on the local
 * hour, which in some zones is not the hour of UTC.
 */
export class LocalTime {
  #format: Intl.DateTimeFormat | 'process' | undefined
  readonly #offsets = new Map<number, number>()

  /** @param zone a name like `Europe/Paris`; without one that is known, the zone of the process */
  constructor(private readonly zone?: string) {}

  /** `YYYY-MM-DD` of an instant in epoch milliseconds. */
  day(at: number): string {
    return new Date(at + this.#offset(at)).toISOString().slice(0, 10)
  }

  /** The instant at which the local hour of an instant began. */
  hourStart(at: number): number {
    const local = at + this.#offset(at)
    return at - (((local % HOUR_MS) + HOUR_MS) % HOUR_MS)
  }

  /** Hour of the day, 0 to 23, and day of the week, 0 for Sunday. */
  place(at: number): { readonly hour: number; readonly weekday: number } {
    const local = new Date(at + this.#offset(at))
    return { hour: local.getUTCHours(), weekday: local.getUTCDay() }
  }

  /** The last `count` days up to that of an instant, oldest first. */
  daysTo(at: number, count: number): string[] {
    const last = Date.parse(this.day(at))
    return Array.from({ length: count }, (_, n) => dayText(last - (count - 1 - n) * DAY_MS))
  }

  /** The instant at which a day begins, `YYYY-MM-DD`. */
  dayStart(day: string): number {
    const midnight = Date.parse(day)
    // The offset at midnight decides; one step finds it unless clocks change in between, then the second does.
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

  /** The format needs data of languages, 6 MiB of the process: the zone of the process is asked without it. */
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

/** Undefined where the zone is not known, such as the rule `CET-1CEST`. */
function formatOf(timeZone: string | undefined): Intl.DateTimeFormat | undefined {
  if (!timeZone) return undefined
  try {
    return new Intl.DateTimeFormat('en-US', { ...PARTS, timeZone })
  } catch {
    return undefined
  }
}

/** Local time less UTC, in milliseconds. */
function offsetOf(format: Intl.DateTimeFormat, at: number): number {
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
  return Date.UTC(year, month - 1, day, hour, minute, second) - at
}
