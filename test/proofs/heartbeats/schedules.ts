import { Schedule, ZoneClocks } from '../../../plugins/agents/heartbeats/windows.js'
import { seededIds } from '../../../testing/seeded-ids.js'
import { ZONES } from './compare.js'
import { Clocks, isAllowed, type OracleWindow } from './oracle.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Compares, minute by minute around every change of clocks in a year, what is open and when it opens next. */
export function compareSchedules(of: { zones: number; seed: number; year: number; hours: number }): {
  minutes: number
  wrong: string[]
} {
  const dice = seededIds(of.seed)
  const below = (n: number) => Math.floor(dice.random() * n)
  const time = () => `${String(below(5)).padStart(2, '0')}:${String(below(60)).padStart(2, '0')}`
  const clocks = new Clocks()
  const zoneClocks = new ZoneClocks()
  const wrong: string[] = []
  let minutes = 0
  for (const timezone of ZONES.slice(0, of.zones)) {
    for (const change of changesOf(timezone, of.year, clocks)) {
      // Around the small hours, where clocks are changed; an end before its start is on the next day.
      const window = (): OracleWindow => ({
        timezone,
        start: time(),
        end: `0${below(5)}:${below(2) === 0 ? '00' : '31'}`,
      })
      const policy = { active: [window(), window()].filter(isSome), quiet: [window()].filter(isSome) }
      const schedule = new Schedule({ active_hours: policy.active, quiet_windows: policy.quiet }, zoneClocks)
      let next: number | undefined
      for (let at = change + of.hours * HOUR; at >= change - of.hours * HOUR; at -= MINUTE) {
        if (isAllowed(policy, at, clocks)) next = at
        const opening = schedule.nextOpen(at)
        minutes++
        const isWrong =
          next === undefined ? opening !== undefined && opening <= change + of.hours * HOUR : opening !== next
        if (isWrong || schedule.isOpen(at) !== (next === at)) {
          wrong.push(`${timezone} ${new Date(at).toISOString()} ${JSON.stringify(policy)}: ${opening}, not ${next}`)
        }
      }
    }
  }
  return { minutes, wrong }
}

/** Compares every minute of a year in every zone, one policy each; when it opens next is asked wherever that changes. */
export function compareYear(of: { zones: number; seed: number; year: number }): { minutes: number; wrong: string[] } {
  const dice = seededIds(of.seed)
  const below = (n: number) => Math.floor(dice.random() * n)
  const time = () => `${String(below(24)).padStart(2, '0')}:${String(below(60)).padStart(2, '0')}`
  const clocks = new Clocks()
  const zoneClocks = new ZoneClocks()
  const wrong: string[] = []
  let minutes = 0
  for (const timezone of ZONES.slice(0, of.zones)) {
    const window = (): OracleWindow => ({ timezone, start: time(), end: time() })
    const policy = { active: [window()].filter(isSome), quiet: [window()].filter(isSome) }
    const schedule = new Schedule({ active_hours: policy.active, quiet_windows: policy.quiet }, zoneClocks)
    const end = Date.UTC(of.year + 1, 0, 1)
    let next: number | undefined
    for (let at = end; at >= Date.UTC(of.year, 0, 1); at -= MINUTE) {
      const open = isAllowed(policy, at, clocks)
      const edge = open !== (next === at + MINUTE)
      if (open) next = at
      minutes++
      const opening = edge && next !== undefined ? schedule.nextOpen(at) : next
      if (schedule.isOpen(at) !== open || opening !== next)
        wrong.push(`${timezone} ${new Date(at).toISOString()} ${JSON.stringify(policy)}: ${opening}, not ${next}`)
    }
  }
  return { minutes, wrong }
}

const isSome = ({ start, end }: OracleWindow) => start !== end

/** The hours of a year in which the clocks of a zone run on by anything else than an hour. */
function changesOf(timezone: string, year: number, clocks: Clocks): number[] {
  const changes: number[] = []
  const minuteAt = (at: number) => {
    const shown = clocks.show(timezone, at)
    return Number(shown.slice(0, 2)) * 60 + Number(shown.slice(3))
  }
  let before = minuteAt(Date.UTC(year, 0, 1))
  for (let at = Date.UTC(year, 0, 1) + HOUR; at < Date.UTC(year + 1, 0, 1); at += HOUR) {
    const now = minuteAt(at)
    if (now !== (before + 60) % 1440) changes.push(at)
    before = now
  }
  return changes
}
