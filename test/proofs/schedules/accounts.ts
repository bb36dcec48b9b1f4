import type { Reply } from '../../harness/kernel.js'
import type { Lived } from './life.js'
import type { PlannedJob } from './random-jobs.js'

/** Clocks are looked at so often, and so late may an occurrence be of which the daemon was not kept. */
const LATE_MS = 61_000

/** How occurrences are accounted for, and which are not, or twice. */
export interface Accounts {
  occurrences: number
  fired: number
  coalesced: number
  skipped: number
  readonly wrong: string[]
}

/** Compares what a daemon recorded with the occurrences that there were. */
export function accountsOf(
  jobs: readonly PlannedJob[],
  known: ReadonlyMap<string, readonly number[]>,
  { runs, troubled, repeated }: Lived,
): Accounts {
  const accounts: Accounts = { occurrences: 0, fired: 0, coalesced: 0, skipped: 0, wrong: [] }
  const within = (spans: Lived['troubled'], at: number) => spans.some(({ from, to }) => at >= from && at <= to)
  for (const job of jobs) {
    const times = known.get(job.id) ?? []
    const due = new Set(times)
    const own = new Map<number, Reply>()
    const stoodFor = new Map<number, number>()
    const say = (at: number, text: string) =>
      accounts.wrong.push(
        `${job.id} (${JSON.stringify(job.plan)}, ${job.policy}) at ${new Date(at).toISOString()}: ${text}`,
      )
    const all = [...runs.values()].filter(({ job_id }) => job_id === job.id)
    for (const run of all) {
      const at = Date.parse(run.scheduled_at)
      if (!due.has(at)) say(at, 'a run of an occurrence that there is not')
      if (own.has(at)) say(at, 'two runs')
      own.set(at, run)
      const since = run.metadata?.missed_since
      for (const missed of times)
        if (since && missed >= Date.parse(since) && missed < at) stoodFor.set(missed, (stoodFor.get(missed) ?? 0) + 1)
      const late = Date.parse(run.started_at) - at
      if (run.metadata?.reason === 'self_overlap') {
        if (!all.some(other => other !== run && isUnderWay(other, run.started_at))) say(at, 'nothing that it overlaps')
      } else for (const text of problems(job, run, late)) say(at, text)
    }
    for (const at of times) {
      accounts.occurrences++
      const run = own.get(at)
      const count = (run ? 1 : 0) + (stoodFor.get(at) ?? 0)
      if (count === 0) say(at, 'lost')
      if (count > 1 && !within(repeated, at)) say(at, `accounted for ${count} times`)
      if (!run) accounts.coalesced++
      else if (run.metadata?.reason) accounts.skipped++
      else accounts.fired++
      if (within(troubled, at)) continue
      if (run?.status !== 'completed') say(at, `came while the daemon ran, and is ${run?.error ?? 'coalesced'}`)
      else if (Date.parse(run.started_at) - at > LATE_MS) say(at, `is late: ${run.started_at}`)
    }
  }
  return accounts
}

/** Whether a run has started and not ended at that instant. */
const isUnderWay = ({ started_at: from, ended_at: to }: Reply, instant: string) => from <= instant && to >= instant

/** What a policy does not allow. */
function problems({ policy, graceSeconds }: PlannedJob, run: Reply, late: number): string[] {
  const { reason, missed_since: since } = run.metadata ?? {}
  const grace = (graceSeconds || 1) * 1000
  return [
    ...(since && policy === 'replay' ? ['replay leaves out an occurrence'] : []),
    ...(reason && reason !== 'misfire_grace_exceeded' ? [`skipped for ${reason}`] : []),
    ...(reason && policy !== 'skip_missed' ? [`${policy} skips`] : []),
    ...(reason && late <= grace ? [`skipped within its grace, ${late} ms late`] : []),
    ...(!reason && since && policy === 'skip_missed' && late > grace ? [`run beyond its grace, ${late} ms late`] : []),
    ...(late < 0 ? [`started before it was due, ${-late} ms`] : []),
  ]
}
