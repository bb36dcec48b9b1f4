import type { ComponentChildren } from 'preact'
import { api, type ReplyOf } from '../../core/api.js'
import { clock } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { go, linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Columns } from '../../ui/columns.js'
import { Detail } from '../../ui/list.js'
import { Badge, Fields, Loading, Page, Problem } from '../../ui/parts.js'

type Run = ReplyOf<'GET /api/automation/runs'>['runs'][number]
type Occasion = NonNullable<ReplyOf<'GET /api/automation/simulation'>['simulation']['jobs']>['occasions'][number]
export type Span = 'week' | 'month'

/** An entry of the calendar: a past run or a planned occurrence. */
interface Entry {
  readonly at: number
  readonly name: string
  /** The status of the run, or the prediction of the simulation. */
  readonly outcome: string
  readonly to: readonly string[]
}

/** Entries of one day, name and outcome. */
interface Row extends Entry {
  readonly count: number
  readonly last: number
}

const words = text.calendar
const DAY_MS = 86_400_000
const MOST_RUNS = 1000
const MOST_PLANNED = 5000
/** Maximum number of rows per day in the month view. */
const MOST_ROWS = 4
/** Maximum number of runs with the same name and outcome that get rows of their own. */
const MOST_SINGLE = 3

const dayFormat = new Intl.DateTimeFormat('en', { weekday: 'short', day: 'numeric', month: 'short' })
const monthFormat = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric' })
const timeFormat = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const ownZone = new Intl.DateTimeFormat().resolvedOptions().timeZone

const midnight = (at: Date, days = 0) => new Date(at.getFullYear(), at.getMonth(), at.getDate() + days)
const nameOf = (day: Date) =>
  [day.getFullYear(), day.getMonth() + 1, day.getDate()].map(part => String(part).padStart(2, '0')).join('-')

function dayOf(name: string | undefined): Date {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(name ?? '') ?? []
  return year ? new Date(Number(year), Number(month) - 1, Number(day)) : midnight(new Date())
}

/** The displayed days: a week from Monday, or the weeks of a month. */
function daysOf(span: Span, day: Date): readonly Date[] {
  const first = span === 'week' ? day : new Date(day.getFullYear(), day.getMonth(), 1)
  const monday = midnight(first, -((first.getDay() + 6) % 7))
  const last = new Date(day.getFullYear(), day.getMonth() + 1, 0)
  // Rounded, because clock changes make days of 23 and 25 hours.
  const weeks = span === 'week' ? 1 : Math.ceil((Math.round((last.getTime() - monday.getTime()) / DAY_MS) + 1) / 7)
  return Array.from({ length: weeks * 7 }, (_, n) => midnight(monday, n))
}

async function load(from: Date, to: Date, signal: AbortSignal) {
  const now = Date.now()
  const ahead = Math.ceil((to.getTime() - now) / DAY_MS)
  const [{ runs }, { jobs }, { triggers }, planned] = await Promise.all([
    from.getTime() > now
      ? { runs: [] as readonly Run[] }
      : api(
          'GET /api/automation/runs',
          { query: { since: from.toISOString(), until: to.toISOString(), limit: MOST_RUNS } },
          signal,
        ),
    api('GET /api/automation/jobs', { query: { limit: 200 } }, signal),
    api('GET /api/automation/triggers', { query: { limit: 200 } }, signal),
    ahead <= 0
      ? undefined
      : api(
          'GET /api/automation/simulation',
          { query: { days: Math.min(366, ahead), part: 'jobs', limit: MOST_PLANNED } },
          signal,
        ),
  ])
  const names = new Map([...jobs, ...triggers].map(({ id, name }) => [id, name]))
  const timeline = planned?.simulation.jobs
  return {
    runs,
    entries: [
      ...runs.map(run => entryOfRun(run, names)),
      ...(timeline?.occasions ?? []).filter(({ at }) => Date.parse(at) < to.getTime()).map(entryOfOccasion),
    ].sort((a, b) => a.at - b.at),
    zone: planned?.simulation.timezone,
    isCut: runs.length === MOST_RUNS || (timeline?.unlisted ?? 0) > 0 || timeline?.ended_early !== undefined,
  }
}

function entryOfRun(run: Run, names: ReadonlyMap<string, string>): Entry {
  const id = run.job_id ?? run.trigger_id ?? ''
  const at = Date.parse(run.started_at ?? run.scheduled_at ?? '')
  return { at, name: names.get(id) ?? id, outcome: run.status, to: ['run', run.id] }
}

const entryOfOccasion = ({ at, name, job_id: id = '', outcome, reason }: Occasion): Entry => ({
  at: Date.parse(at),
  name,
  outcome: outcome === 'fires' ? words.simulated : words.skipped(reason ?? ''),
  to: ['job', id],
})

/** The rows of a day. Many entries with the same name and outcome are one row with a count. */
function rowsOf(entries: readonly Entry[]): readonly Row[] {
  const groups = new Map<string, Entry[]>()
  for (const entry of entries) {
    const key = JSON.stringify([entry.name, entry.outcome])
    groups.set(key, [...(groups.get(key) ?? []), entry])
  }
  return [...groups.values()]
    .flatMap(group => {
      const [first, last] = [group[0]!, group.at(-1)!]
      if (group.length > MOST_SINGLE) return [{ ...first, count: group.length, last: last.at }]
      return group.map(one => ({ ...one, count: 1, last: one.at }))
    })
    .sort((a, b) => a.at - b.at)
}

/**
 * A calendar of jobs and triggers: past runs with their outcome, and the occurrences that the daemon's simulation
 * predicts.
 */
export function Calendar({
  span,
  day: dayName,
  selected,
  children,
}: {
  readonly span: Span
  readonly day: string | undefined
  readonly selected: string | undefined
  readonly children: ComponentChildren
}) {
  const day = dayOf(dayName)
  const days = daysOf(span, day)
  const [from, to] = [days[0]!, midnight(days.at(-1)!, 1)]
  const { data, error, reload } = useResource(
    signal => load(from, to, signal),
    [span, nameOf(from)],
    /^(?:automation|job|trigger)/,
  )
  const at = (next: Span, other: Date) => linkTo('automation', 'calendar', next, nameOf(other))
  const step = (by: number) =>
    span === 'week' ? midnight(day, 7 * by) : new Date(day.getFullYear(), day.getMonth() + by, 1)
  const run = data?.runs.find(({ id }) => id === selected)
  const here = ['automation', 'calendar', span, nameOf(day)] as const
  return (
    <Columns aside={run && <RunDetails run={run} close={() => go(...here)} />}>
      <Page title={text.automation.title} command={`svc automation simulate`}>
        {children}
        <div class="toolbar">
          <nav class="actions" aria-label={words.title}>
            <a class="button" href={at(span, step(-1))}>
              {words.previous}
            </a>
            <a class="button" href={at(span, new Date())}>
              {words.today}
            </a>
            <a class="button" href={at(span, step(1))}>
              {words.next}
            </a>
          </nav>
          <h2 aria-live="polite">
            {span === 'month'
              ? monthFormat.format(day)
              : `${dayFormat.format(from)} – ${dayFormat.format(days.at(-1))}`}
          </h2>
          <nav class="actions" aria-label={words.week}>
            {(['week', 'month'] as const).map(name => (
              <a key={name} class="button" href={at(name, day)} aria-current={name === span ? 'page' : undefined}>
                {words[name]}
              </a>
            ))}
          </nav>
        </div>
        <Problem error={error} retry={reload} />
        {!data && error === undefined && <Loading />}
        {data && (
          <>
            {data.isCut && <p class="muted">{words.cut}</p>}
            <ol class={`calendar ${span}`}>
              {days.map(one => (
                <Day
                  key={nameOf(one)}
                  day={one}
                  entries={data.entries.filter(
                    entry => entry.at >= one.getTime() && entry.at < midnight(one, 1).getTime(),
                  )}
                  span={span}
                  isOther={span === 'month' && one.getMonth() !== day.getMonth()}
                  here={here}
                />
              ))}
            </ol>
            {data.zone !== undefined && data.zone !== ownZone && <p class="muted">{words.zone(data.zone)}</p>}
          </>
        )}
      </Page>
    </Columns>
  )
}

function Day({
  day,
  entries,
  span,
  isOther,
  here,
}: {
  readonly day: Date
  readonly entries: readonly Entry[]
  readonly span: Span
  readonly isOther: boolean
  readonly here: readonly string[]
}) {
  const rows = rowsOf(entries)
  const shown = span === 'month' && rows.length > MOST_ROWS ? rows.slice(0, MOST_ROWS - 1) : rows
  const isToday = nameOf(day) === nameOf(new Date())
  return (
    <li class={`day ${isOther ? 'other' : ''} ${rows.length === 0 ? 'free' : ''}`}>
      <h3 aria-current={isToday ? 'date' : undefined}>
        <time dateTime={nameOf(day)}>{dayFormat.format(day)}</time>
      </h3>
      <ul>
        {shown.map(row => (
          <li key={`${row.at} ${row.name} ${row.outcome}`}>
            <a
              class={`occasion ${toneOf(row)}`}
              href={row.to[0] === 'job' ? linkTo('automation', 'jobs', row.to[1]!) : linkTo(...here, row.to[1]!)}
            >
              <span class="when">
                {timeFormat.format(row.at)}
                {row.count > 1 && `–${timeFormat.format(row.last)} · ${row.count}×`}
              </span>
              <span class="name">{row.name}</span>
              <span class="outcome">{row.outcome}</span>
            </a>
          </li>
        ))}
      </ul>
      {shown.length < rows.length && (
        <a class="rest" href={linkTo('automation', 'calendar', 'week', nameOf(day))}>
          {words.more(rows.length - shown.length)}
        </a>
      )}
    </li>
  )
}

/** The colour of a row. The outcome is also text, for people who cannot distinguish the colours. */
function toneOf({ outcome }: Row): string {
  if (outcome === 'completed') return 'good'
  if (outcome === 'failed') return 'bad'
  if (outcome === 'running' || outcome === 'scheduled' || outcome === 'delegated') return 'busy'
  return outcome === words.simulated ? 'planned' : 'plain'
}

function RunDetails({ run, close }: { readonly run: Run; readonly close: () => void }) {
  return (
    <Detail title={words.run} command={`svc automation runs get ${run.id}`} close={close}>
      <Fields
        of={[
          [text.sessions.state, <Badge key="state" of={run.status} />],
          [text.jobEditor.started, run.started_at && clock(run.started_at)],
          [words.occurrence, run.scheduled_at && clock(run.scheduled_at)],
          [text.work.ended, run.ended_at && clock(run.ended_at)],
          [text.work.attempt, String(run.attempt)],
          [
            text.automation.jobs,
            run.job_id && (
              <a key="job" href={linkTo('automation', 'jobs', run.job_id)}>
                {run.job_id}
              </a>
            ),
          ],
          [text.automation.triggers, run.trigger_id],
          [
            text.sessions.name,
            run.session_id && (
              <a key="session" href={linkTo('sessions', run.session_id)}>
                {run.session_id}
              </a>
            ),
          ],
        ]}
      />
      {run.error && <Problem error={run.error} />}
    </Detail>
  )
}
