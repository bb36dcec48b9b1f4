import { definePlugin, type PluginKernel } from '../../../../kernel/plugin.js'
import { Events } from '../../../../plugins/platform/events/api.js'
import { RunCreated, RunEnded, RunStarted } from '../../../../plugins/work/automation/api.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import type { Reply } from '../../../harness/kernel.js'
import { type Bench, type BenchOptions, bench } from './bench.js'
import { completed, failed } from './fake-sessions.js'

export interface TwinOptions {
  readonly start: number
  readonly config: unknown
  readonly runMs: number
  /** Names of jobs whose runs fail, and how long until the next attempt. */
  readonly fails: (name: string) => boolean
}

/** A daemon on a virtual clock whose runs take a time of that clock, for what a simulation says of it. */
export class Twin {
  readonly #counts = { created: 0, ended: 0, finished: 0 }
  /** Runs that were created and have not begun a turn or ended. */
  readonly #before = new Set<string>()
  /** Until when occurrences wait for a slot. */
  #waits: number[] = []
  /** Resolves when the transactions that are under way are durable, with the last event; undefined: not all are counted. */
  #told: () => Promise<number | undefined> = () => Promise.reject(new Error('the plugin that counts did not start'))
  /** Turns that go on, and when they end. */
  #ends: { readonly at: number; readonly id: string }[] = []
  /** Times at which a run may begin anew. */
  #retries: number[] = []

  private constructor(
    private readonly options: TwinOptions,
    public b: Bench,
  ) {}

  static async open(options: TwinOptions): Promise<Twin> {
    const twin = new Twin(options, undefined as never)
    await twin.#boot(options.start)
    return twin
  }

  async #boot(at: number, home?: string): Promise<void> {
    const clock = new VirtualClock(at)
    const [counts, before] = [this.#counts, this.#before]
    const settle = (told: () => Promise<number | undefined>) => {
      this.#told = told
    }
    const counter = definePlugin({
      name: 'counter',
      version: '1.0.0',
      requires: { events: Events },
      service: async () =>
        class {
          constructor({ db, needs: { events } }: PluginKernel<{ events: typeof Events }>) {
            let seen = events.last()
            settle(async () => {
              // One that writes, or it would wait for nothing.
              await db.tx(t => t.run('INSERT INTO counter_looks (n) VALUES (1)'))
              return seen === events.last() ? seen : undefined
            })
            // Of all types, so that it can be told when all of them have been counted.
            events.on('*', ({ seq, name, payload }) => {
              const run = payload as { id?: string; status?: string; session_id?: string }
              if (name === RunCreated.name && run.status === 'scheduled') {
                counts.created++
                before.add(run.id ?? '')
              }
              if (name === RunStarted.name) before.delete(run.id ?? '')
              // One that waited in vain for a slot.
              if (name === RunEnded.name && run.session_id === undefined && before.delete(run.id ?? ''))
                counts.created--
              if (name === RunEnded.name && run.session_id !== undefined) counts.ended++
              seen = seq
            })
          }
        },
    }).surface({
      tables: [
        {
          id: '001',
          sql: 'CREATE TABLE counter_looks (n INTEGER NOT NULL) STRICT',
        },
      ],
    })
    const { config, runMs } = this.options
    const answer: BenchOptions['answer'] = () => {
      const { id } = this.b.sessions.prompts.at(-1) as { id: string }
      this.#ends.push({ at: clock.now() + runMs, id })
      return undefined
    }
    this.b = await bench({ clock, config, answer, plugins: [counter], ...(home === undefined ? {} : { home }) })
    await this.#quiet()
  }

  /** Lets time pass up to an instant; whatever happens comes to rest before the clock goes on. */
  async passTo(instant: number): Promise<void> {
    const { clock, sessions } = this.b
    let fire = await this.#quiet()
    while (clock.now() < instant) {
      const next = Math.min(instant, fire, ...this.#retries, ...this.#waits, ...this.#ends.map(({ at }) => at))
      await clock.advance(next - clock.now())
      this.#retries = this.#retries.filter(at => at > next)
      fire = await this.#quiet()
      for (const end of this.#ends.filter(({ at }) => at <= next)) {
        this.#ends = this.#ends.filter(one => one !== end)
        this.#counts.finished++
        const isFailure = this.options.fails(this.#nameOf(end.id))
        sessions.finish(end.id, isFailure ? failed('no') : completed)
        // A base delay of 7 s, doubled.
        if (isFailure) for (const seconds of [7, 14, 28]) this.#retries.push(next + seconds * 1000)
        fire = await this.#quiet()
      }
    }
  }

  /** The daemon ends in order, and is back at that instant. */
  async away(until: number): Promise<void> {
    const { home } = this.b
    const { length } = await this.#waiting()
    await this.b.kernel.close()
    this.#counts.ended = this.#counts.finished = 0
    this.#counts.created = length
    this.#ends = []
    this.#retries = []
    await this.#boot(until, home)
  }

  /** Resolves when nothing is due and nothing is on its way; with the time at which a job is due next. */
  async #quiet(): Promise<number> {
    const { clock } = this.b
    const look = async () => {
      const { automation } = (await this.b.request('GET', '/api/status')).body
      const { created, ended, finished } = this.#counts
      const started = this.b.sessions.prompts.length
      const waiting = await this.#waiting()
      this.#waits = waiting.map(({ metadata }) => Date.parse(metadata.waits_until))
      if (created !== started + waiting.length || ended !== finished) return false
      const now = clock.now()
      const heap = automation.next_fire === null ? Number.POSITIVE_INFINITY : Date.parse(automation.next_fire)
      if (heap <= now) return false
      // A backlog waits for its own run to end: it is due, and not in the heap. Names end like ids, in the number of the job.
      const going = new Set([
        ...this.#ends.map(({ id }) => numberOf(this.#nameOf(id))),
        ...waiting.map(({ job_id: job }) => numberOf(job)),
      ])
      const due = automation.scheduled_jobs.filter((one: Reply) => Date.parse(one.next_run_at) <= now)
      if (due.some((one: Reply) => !going.has(numberOf(one.job_id)))) return false
      const next = automation.scheduled_jobs[due.length]?.next_run_at
      return heap === (next === undefined ? Number.POSITIVE_INFINITY : Date.parse(next)) ? heap : false
    }
    for (let tries = 0; tries < 3000; tries++) {
      const before = await this.#told()
      await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
      const next = await look()
      // What became durable while it looked may not have been counted: the look was of two times at once.
      if (before !== undefined && next !== false && before === (await this.#told())) return next
    }
    const { automation } = (await this.b.request('GET', '/api/status')).body
    const state = { ...this.#counts, prompts: this.b.sessions.prompts.length, next: automation.next_fire }
    const first = automation.scheduled_jobs[0]
    throw new Error(`the daemon does not come to rest: ${JSON.stringify({ now: this.b.clock.now(), ...state, first })}`)
  }

  /** Occurrences that wait for a slot. */
  async #waiting(): Promise<Reply[]> {
    const { runs } = (await this.b.request('GET', '/api/automation/runs?status=scheduled&limit=200')).body
    return runs.filter((run: Reply) => run.metadata?.waits_until)
  }

  #nameOf(session: string): string {
    return this.b.sessions.created.find(({ id }) => id === session)?.name ?? ''
  }

  /** What happened, in the words of a simulation. */
  async lived(jobs: readonly string[]): Promise<string[]> {
    const lines: string[] = []
    for (const id of jobs)
      for (const run of (await this.b.request('GET', `/api/automation/jobs/${id}/runs?limit=1000`)).body.runs)
        lines.push(
          lineOf({
            ...run,
            ...run.metadata,
            at: run.metadata?.reason ? run.ended_at : run.started_at,
            outcome: run.metadata?.reason ? 'skips' : 'fires',
          }),
        )
    return lines.sort()
  }
}

const numberOf = (text: string) => Number(/\d+$/.exec(text)?.[0])

/** One occasion, or one run. */
export const lineOf = ({
  at,
  job_id,
  outcome,
  attempt,
  reason,
  scheduled_at,
  missed_since,
  resumes_at,
}: Reply): string =>
  [at, job_id, outcome, `attempt ${attempt}`, reason, `of ${scheduled_at}`, missed_since, resumes_at].join(' ')
