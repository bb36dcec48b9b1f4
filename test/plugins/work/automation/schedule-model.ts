import * as assert from 'uvu/assert'
import type { Reply } from '../../../harness/kernel.js'

const MINUTE = 60_000

/** A schedule as the model knows it: a grid of its own arithmetic, nothing of the code under test. */
export type ModelSchedule =
  | { readonly kind: 'every'; readonly ms: number }
  | { readonly kind: 'cron'; readonly expr: string; readonly matches: (minute: number) => boolean }

export interface Plan {
  readonly schedule: ModelSchedule
  readonly policy: 'skip_missed' | 'coalesce' | 'replay' | 'run_once_on_catchup'
  readonly graceMs: number
  /** Wall clock when it was made. */
  readonly from: number
  /** Earliest wall clock from which every instant must be accounted for, and from which one may be. */
  must: number
  may: number
  /** Latest wall clock that it has seen. */
  to: number
  /** How far the wall clock has come since it was set back last: what lies before the plan's beginning and after this never was. */
  reached: number
  /** The clock was set back meanwhile: an instant that another run stood for may come again, on its own. */
  repeated: boolean
  /** Ids of the runs that were made under it. */
  readonly runs: Set<string>
}

/** All instants of a plan in (from, to]. */
export function instants(plan: Plan, from: number, to: number): number[] {
  const { schedule } = plan
  const seen: number[] = []
  if (schedule.kind === 'every') {
    const first = plan.from + (Math.floor((from - plan.from) / schedule.ms) + 1) * schedule.ms
    for (let at = first; at <= to; at += schedule.ms) seen.push(at)
  } else {
    for (let at = (Math.floor(from / MINUTE) + 1) * MINUTE; at <= to; at += MINUTE)
      if (schedule.matches(at / MINUTE)) seen.push(at)
  }
  return seen
}

const time = (text: string | null | undefined) => (text ? Date.parse(text) : undefined)

/** Which instants of its plan a run accounts for: its own, those that it stands for, those that the fire limit took. */
function accountedBy(run: Reply, plan: Plan): { own: number; others: number[] } {
  const own = time(run.scheduled_at) ?? Number.NaN
  const since = time(run.metadata?.missed_since)
  const resumes = time(run.metadata?.resumes_at)
  return {
    own,
    others: [
      ...(since === undefined ? [] : instants(plan, since - 1, own - 1)),
      ...(resumes === undefined ? [] : instants(plan, own, resumes - 1)),
    ],
  }
}

/** Every instant of the plan is accounted for, once; no run is of an instant that is none. `all`: runs of the job by id. */
export function checkAccounts(job: string, plan: Plan, all: ReadonlyMap<string, Reply>): void {
  const at = (ms: number) => `${job} at ${new Date(ms).toISOString()}`
  const valid = new Set(instants(plan, plan.may, plan.to))
  const times = new Map<number, number>()
  const count = (ms: number) => times.set(ms, (times.get(ms) ?? 0) + 1)
  for (const id of plan.runs) {
    const run = all.get(id)
    const { own, others } = accountedBy(run, plan)
    assert.ok(valid.has(own), `${at(own)}: a run of an instant that is none`)
    for (const instant of new Set([own, ...others])) count(instant)
    checkReason(run, plan, at(own))
  }
  const earlier = new Set([...all.values()].map(run => time(run.scheduled_at)))
  for (const instant of instants(plan, plan.must, plan.to)) {
    if (instant <= plan.from && instant > plan.reached) continue
    const n = times.get(instant) ?? 0
    if (n === 0) assert.ok(plan.repeated && earlier.has(instant), `${at(instant)}: lost`)
    else if (!plan.repeated) assert.is(n, 1, `${at(instant)}: accounted for ${n} times`)
  }
}

function checkReason(run: Reply, plan: Plan, what: string): void {
  const since = run.metadata?.missed_since
  if (since !== undefined) assert.is.not(plan.policy, 'replay', `${what}: replay leaves nothing out`)
  if (run.metadata?.reason === 'misfire_grace_exceeded') {
    assert.is(plan.policy, 'skip_missed', what)
    assert.ok(Date.parse(run.started_at) - Date.parse(run.scheduled_at) > plan.graceMs, `${what}: within its grace`)
  } else if (since !== undefined && plan.policy === 'skip_missed') {
    assert.ok(Date.parse(run.started_at) - Date.parse(run.scheduled_at) <= plan.graceMs, `${what}: beyond its grace`)
  }
  if (run.status === 'canceled') assert.ok(run.metadata?.reason ?? run.error, `${what}: canceled without a reason`)
}
