import { clip } from '../../../../kernel/kit/text.js'
import type { CommandContext } from '../../../../kernel/plugin.js'
import type { SimulatedOccasion, SimulationReply, Timeline } from '../../../../schemas/automation/simulation.js'

/** Width of a name and of a line. */
const [NAME, WIDTH] = [24, 80]
/** Most points in time on one line; of more, only the first and the last are shown. */
const TIMES = 5
const OPTIONS = {
  days: 'days',
  part: 'part',
  only: 'only',
  failing: 'failing',
  'run-seconds': 'run_seconds',
  offline: 'offline',
  limit: 'limit',
}
const SILENT = {
  disabled: 'disabled',
  ended: 'no further occurrence',
  not_due: 'not due in this period',
  no_event: 'no matching event recorded',
  webhook: 'fired by webhook deliveries, which are not recorded',
}

/** `svc automation simulate`. */
export async function runSimulate({ options, client, out }: CommandContext): Promise<void> {
  const query = new URLSearchParams()
  for (const [option, member] of Object.entries(OPTIONS)) {
    const value = options[option]
    if (value !== undefined) query.set(member, String(value))
  }
  const url = `/api/automation/simulation?${query}`
  const reply = (await client.request('GET', url)) as SimulationReply
  if (out.json) return out.value(reply)
  const { timezone, jobs, triggers, max_concurrent_jobs: atOnce } = reply.simulation
  if (jobs) {
    show('Jobs', jobs, timezone, out)
    for (const text of crowdedText(jobs, atOnce, clockOf(timezone))) out.line(out.color('yellow', text))
  }
  if (triggers) show('Triggers, replaying recorded events', triggers, timezone, out)
}

function show(title: string, timeline: Timeline, timezone: string, out: CommandContext['out']): void {
  const clock = clockOf(timezone)
  const { from, to, definitions, fires, skips, events } = timeline
  out.line(out.color('bold', `${title}, ${clock(from).day} to ${clock(to).day} (${timezone})`))
  const read = events === undefined ? '' : `events: ${events}, `
  out.line(`${read}definitions: ${definitions}, fires: ${fires}, skips: ${skips}`)
  let today = ''
  for (const { day, name, word, reason, times } of linesOf(timeline.occasions, clock)) {
    if (day !== today) out.line(out.color('dim', day))
    today = day
    const shownTimes =
      times.length <= TIMES ? times.join(' ') : `${times[0]} to ${times.at(-1)} (${times.length} times)`
    const line = `  ${name.padEnd(NAME)}  ${word.padEnd(5)}  ${shownTimes}`
    out.line(reason === '' ? line : out.color('yellow', line))
    if (reason !== '') out.line(out.color('dim', clip(`${' '.repeat(NAME + 4)}${reason}`, WIDTH)))
  }
  for (const { name, why } of timeline.silent) out.line(out.color('dim', `  ${nameOf(name)}  ${SILENT[why]}`))
  if (timeline.unlisted > 0) out.line(out.color('dim', `${timeline.unlisted} more not shown; use --limit or --only`))
  if (timeline.ended_early)
    out.line(out.color('yellow', `stopped at ${timeline.ended_early}: too many fires and skips; use fewer --days`))
}

/** The warning about minutes in which more jobs are due than can run at once. */
function crowdedText({ crowded = [] }: Timeline, atOnce: number, clock: ReturnType<typeof clockOf>): string[] {
  const [first] = crowded
  if (!first) return []
  const { day, time } = clock(first.at)
  const more = crowded.length === 1 ? '' : `, and more than ${atOnce} in ${crowded.length - 1} other minutes`
  return [
    `${first.due} occurrences are due ${day} ${time}${more}`,
    `${atOnce} run at once, the others wait (automation.max_concurrent_jobs, automation.queue_wait)`,
  ]
}

interface Line {
  readonly day: string
  readonly name: string
  readonly word: string
  readonly reason: string
  readonly times: string[]
}

/** One line per definition, day and outcome, ordered by their first time. */
function linesOf(occasions: readonly SimulatedOccasion[], clock: ReturnType<typeof clockOf>): Line[] {
  const lines = new Map<string, Line>()
  for (const occasion of occasions) {
    const { day, time } = clock(occasion.at)
    const { outcome, attempt, missed_since: since, resumes_at: resumes } = occasion
    const reason = [
      occasion.reason,
      attempt > 1 ? `attempt ${attempt}` : '',
      since ? `${occasion.reason ? '' : 'missed '}since ${clock(since).day} ${clock(since).time}` : '',
      resumes ? `resumes ${clock(resumes).day} ${clock(resumes).time}` : '',
    ]
      .filter(Boolean)
      .join(', ')
    const key = JSON.stringify([day, occasion.job_id ?? occasion.trigger_id, outcome, reason])
    const line = lines.get(key) ?? { day, name: nameOf(occasion.name), word: outcome, reason, times: [] }
    line.times.push(time)
    lines.set(key, line)
  }
  return [...lines.values()]
}

const nameOf = (name: string) => (name.length > NAME ? `${clip(name, NAME - 1)}…` : name)

/** Day and time in a time zone; seconds only when not zero. */
function clockOf(timezone: string) {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short', timeStyle: 'medium' })
  return (at: string) => {
    const [day = '', time = ''] = format.format(Date.parse(at)).split(' ')
    return { day, time: time.endsWith(':00') ? time.slice(0, -3) : time }
  }
}
