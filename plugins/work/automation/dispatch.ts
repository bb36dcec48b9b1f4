import { Fault, type Gate, messageOf, type Pipeline, type Tx, within } from '../../../kernel/plugin.js'
import type { StopReason, TurnOutcome } from '../sessions/api.js'
import type { Fire, FirePrompt } from './api.js'
import type { Claims } from './claim.js'
import type { DefinitionRecord } from './definitions.js'
import { isLoop } from './job-kind.js'
import type { K } from './needs.js'
import type { Pace } from './pace.js'
import { delegate } from './runs/delegate.js'
import { type Ending, unsupported } from './runs/ending.js'
import { retryDelay } from './runs/room.js'
import { openWorkspaceOf } from './runs/run-place.js'
import { isFinal, type RunRow } from './runs/run-row.js'
import { RunChanged, type RunStore } from './runs/runs.js'

/** Failure code of a run whose session asked a question that expired. */
export const QUESTION_EXPIRED = 'question_expired'
/** How long a session may take to end after its turn before the run counts as failed. */
const STOP_MS = 10_000

/** A dispatch in progress, with the session of its current attempt and the run as it was written last. */
interface Active {
  session?: string
  run?: RunRow
}

/** Starts sessions for claimed runs and records how they end. */
export class Dispatcher {
  readonly #active = new Map<Active, Promise<void>>()
  readonly #closing = new AbortController()

  /** @param ended called with the job id when a run of a job has ended */
  constructor(
    private readonly kernel: K,
    private readonly runs: RunStore,
    private readonly claims: Claims,
    private readonly points: { readonly preFire: Gate<[Fire]>; readonly prompting: Pipeline<FirePrompt, [Fire]> },
    private readonly pace: Pace,
    private readonly ended: (job: string) => void,
  ) {}

  /** Starts a durably `scheduled` run; returns at once. */
  start(run: RunRow, definition: DefinitionRecord): void {
    // The next daemon dispatches it, as after a kill.
    if (this.#closing.signal.aborted && run.trigger_id !== null) return
    const active: Active = {}
    const done = this.#run(run, definition, active).catch(error => {
      this.kernel.log.error(
        `run ${run.id} of ${definition.kind} ${definition.id} could not be recorded: ${messageOf(error)}`,
        {
          run: run.id,
          definition: definition.id,
        },
      )
    })
    this.#active.set(
      active,
      done.finally(() => this.#active.delete(active)),
    )
  }

  /** Stops the sessions of open runs, which become `canceled`. Resolves when everything is written. */
  async close(): Promise<void> {
    this.#closing.abort()
    const { sessions } = this.kernel.needs
    const stops = [...this.#active.keys()].flatMap(({ session }) =>
      session === undefined ? [] : [sessions.stop(session, { reason: 'shutdown', detail: 'automation is stopping' })],
    )
    await Promise.allSettled(stops)
    await Promise.all(this.#active.values())
  }

  /** One run and its retries. */
  async #run(first: RunRow, firstDefinition: DefinitionRecord, active: Active): Promise<void> {
    let [run, definition] = [first, firstDefinition]
    for (;;) {
      const ending = await this.#attempt(run, definition, active)
      if (run.trigger_id === null) this.ended(run.job_id)
      const delay = isRetried(ending) ? retryDelay(definition.spec, run.attempt) : undefined
      if (delay === undefined || !(await this.#pause(delay))) return
      const again = await this.#again(run)
      if (!again) return
      run = again.run
      definition = again.definition
    }
  }

  async #pause(ms: number): Promise<boolean> {
    const { signal } = this.#closing
    await this.kernel.clock.sleep(ms, signal).catch(() => {})
    return !signal.aborted
  }

  /** Reserves the next attempt; undefined when a limit is reached or the definition was deleted. */
  async #again(run: RunRow): Promise<{ run: RunRow; definition: DefinitionRecord } | undefined> {
    try {
      return await this.kernel.db.tx(t => this.claims.retry(t, run))
    } catch (error) {
      this.kernel.log.warn(`run ${run.id} failed and is not retried: ${messageOf(error)}`, { run: run.id })
      return undefined
    }
  }

  async #attempt(run: RunRow, definition: DefinitionRecord, active: Active): Promise<Ending> {
    let ending: Ending
    delete active.run
    await this.pace.pass()
    try {
      ending = await this.#session(run, definition, active)
    } catch (error) {
      ending = this.#closing.signal.aborted ? shutdown : { status: 'failed', error: describe(error) }
    }
    await this.pace.pass()
    const { task } = ending
    const more = { error: ending.error, ...(task ? { task } : {}) }
    await this.#write(active.run ?? run, (t, row) => {
      // The run outlives its definition, so the row exists. A final state is never overwritten.
      if (!row || isFinal(row.status)) return
      this.runs.move(t, row, ending.status, more)
      if ((ending.status === 'completed' || ending.status === 'delegated') && run.trigger_id === null)
        this.claims.completed(t, run.job_id)
    })
    return ending
  }

  /** Changes the run as it was read last; reads it again only when it has changed since. */
  async #write<T>(last: RunRow, change: (t: Tx, row: RunRow | undefined) => T): Promise<T> {
    try {
      return await this.kernel.db.tx(t => change(t, last))
    } catch (error) {
      if (!(error instanceof RunChanged)) throw error
      return this.kernel.db.tx(t => change(t, this.runs.get(last.id)))
    }
  }

  async #session(run: RunRow, definition: DefinitionRecord, active: Active): Promise<Ending> {
    const { sessions } = this.kernel.needs
    const { spec } = definition
    const agentName = spec.agent_name ?? ''
    if (isLoop(spec)) return unsupported('loops_unavailable: loop targets require the loops plugin')
    const workspaceId = await openWorkspaceOf(this.kernel, definition)
    const fire: Fire = {
      runId: run.id,
      workspaceId,
      ...(run.trigger_id === null
        ? { jobId: run.job_id, jobName: spec.name }
        : { triggerId: run.trigger_id, triggerName: spec.name }),
      agentName,
      attempt: run.attempt,
      scheduledAt: run.scheduled_at ?? undefined,
      cause: run.event,
    }
    const veto = await this.points.preFire.ask(fire)
    if (veto) return { status: 'canceled', error: describe(veto) }
    const { prompt, deny } = await this.points.prompting.run({ prompt: run.prompt ?? spec.prompt ?? '' }, fire)
    if (deny !== undefined) return { status: 'canceled', error: coded('hook_denied', deny) }
    if (this.#closing.signal.aborted) return shutdown
    if ('task' in spec && spec.task) return delegate(this.kernel, run, definition, spec.task)
    const session = await sessions.create({
      workspaceId,
      agentName,
      name: spec.name,
      unattended: true,
      actor: this.kernel.actor,
      cause: run.event,
    })
    active.session = session.id
    await this.pace.pass()
    const started = await this.#write(run, (t, row) =>
      this.runs.move(t, row ?? run.id, 'running', { sessionId: session.id }),
    )
    active.run = started
    const outcome = await this.#turn(session.id, prompt, started.event)
    const ending =
      this.#closing.signal.aborted && outcome.status !== 'completed' ? shutdown : this.#ending(session.id, outcome)
    const stopped = await this.#stop(session.id, ending, started.event)
    return ending.status === 'completed' && stopped ? { status: 'failed', error: stopped } : ending
  }

  async #turn(session: string, text: string, cause: string): Promise<TurnOutcome> {
    if (this.#closing.signal.aborted) return { status: 'canceled', turnId: '' }
    try {
      return await this.kernel.needs.sessions.run(session, { text, source: 'automation', cause })
    } catch (error) {
      const summary = describe(error)
      return { status: 'failed', turnId: '', error: summary, failure: { kind: 'prompt_failure', summary } }
    }
  }

  #ending(session: string, outcome: TurnOutcome): Ending {
    if (outcome.status === 'completed') return completed(outcome.expired ?? 0)
    if (outcome.status === 'canceled') return { status: 'canceled', error: 'user_canceled: the turn was canceled' }
    const crashed = this.kernel.needs.sessions.get(session)?.stopReason === 'agent_crashed'
    return {
      status: 'failed',
      error: crashed ? coded('agent_crashed', outcome.error) : coded(outcome.failure.kind, outcome.error),
    }
  }

  /** Stops the session of a run; returns the error when it does not stop in time. */
  async #stop(session: string, ending: Ending, cause: string): Promise<string | undefined> {
    const reasons = {
      completed: 'completed',
      delegated: 'completed',
      failed: 'error',
      canceled: 'user_canceled',
    } as const
    const reason: StopReason = this.#closing.signal.aborted ? 'shutdown' : reasons[ending.status]
    try {
      const how = { reason, cause, ...(ending.error === undefined ? {} : { detail: ending.error }) }
      await within(this.kernel.clock, STOP_MS, this.kernel.needs.sessions.stop(session, how))
      return undefined
    } catch (error) {
      const text = coded('session_stop_failed', messageOf(error))
      this.kernel.log.warn(`session ${session} of a run did not stop: ${messageOf(error)}`, { session })
      return text
    }
  }
}

const shutdown: Ending = { status: 'canceled', error: 'shutdown: the daemon was stopped during this run' }

const coded = (code: string, text: string) => (text.startsWith(`${code}:`) ? text : `${code}: ${text}`)

/** The error text of a run: the stable code first. */
function describe(error: unknown): string {
  return error instanceof Fault ? coded(error.code, error.message) : messageOf(error)
}

/** A turn with an expired question did not do its work. */
function completed(expired: number): Ending {
  if (expired === 0) return { status: 'completed' }
  const count = expired === 1 ? '1 question' : `${expired} questions`
  return { status: 'failed', error: coded(QUESTION_EXPIRED, `${count} expired without an answer`) }
}

/** A retry would wait for the same absent person. */
const isRetried = ({ status, error = '' }: Ending) => status === 'failed' && !error.startsWith(`${QUESTION_EXPIRED}:`)
