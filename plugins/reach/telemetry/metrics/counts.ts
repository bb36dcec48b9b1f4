import { Collected } from '../../../../kernel/platform.js'
import type { Exchange } from '../../../../kernel/plugin.js'
import type { StoredEvent } from '../../../platform/events/api.js'
import type { HookRun } from '../../../work/hooks/api.js'
import type { Recorded } from '../../../work/sessions/api.js'
import type { DeliveryStanding } from '../../bridges/api.js'
import type { K } from '../needs.js'
import { Counter, Histogram } from './counted.js'
import { declared } from './declared.js'

/** Events that end a task run. */
const RUN_ENDS: Readonly<Record<string, string>> = {
  'task.run_completed': 'completed',
  'task.run_failed': 'failed',
  'task.run_operator_forced_fail': 'failed',
  'task.run_recovered_from_attention': 'failed',
  'task.run_canceled': 'canceled',
}
const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'])

/** Metrics that events update, each by a lookup and an addition. */
export class Counts {
  readonly requests = new Counter(declared.requests)
  readonly requestSeconds = new Histogram(declared.requestSeconds)
  readonly events = new Counter(declared.events)
  readonly passes = new Counter(declared.passes)
  readonly hookRuns = new Counter(declared.hookRuns)
  readonly hookSeconds = new Histogram(declared.hookSeconds)
  readonly turns = new Counter(declared.turns)
  readonly turnSeconds = new Histogram(declared.turnSeconds)
  readonly taskRunsEnded = new Counter(declared.taskRunsEnded)
  readonly leasesExpired = new Counter(declared.leasesExpired)
  readonly automationRuns = new Counter(declared.automationRuns)
  readonly triggerFires = new Counter(declared.triggerFires)
  readonly bridgeDeliveries = new Counter(declared.bridgeDeliveries)
  readonly collectFailures = new Counter(declared.collectFailures)
  /** Sessions with a running turn. */
  readonly #running = new Set<string>()
  /** Routes that only stream, as `GET /api/x`, determined on first use. */
  #streaming: ReadonlySet<string> | undefined

  constructor(private readonly kernel: Pick<K, 'collect'>) {}

  get turnsRunning(): number {
    return this.#running.size
  }

  /** Called when routes are added or removed. */
  published(): void {
    this.#streaming = undefined
  }

  request({ path, method, status = 0, door, milliseconds, headers }: Exchange): void {
    const known = METHODS.has(method) ? method : 'other'
    const route = path ?? 'none'
    this.requests.add([route, known, String(status), door])
    const accepts = headers.accept
    const streams = status === 101 || (typeof accepts === 'string' && accepts.includes('text/event-stream'))
    if (!streams && !this.#streams(`${method} ${route}`))
      this.requestSeconds.observe([route, known], milliseconds / 1000)
  }

  event({ name, payload }: StoredEvent): void {
    this.events.add([name])
    const end = RUN_ENDS[name]
    if (end !== undefined) this.taskRunsEnded.add([end])
    else if (name === 'task.run_lease_expired') this.leasesExpired.add([])
    else if (name.startsWith('automation.run.')) this.#automationRun(name, Object(payload))
  }

  pass(kind: string, failed: number): void {
    this.passes.add([kind, failed > 0 ? 'failed' : 'ok'])
  }

  hookRun({ event, source, outcome, micros }: HookRun): void {
    this.hookRuns.add([event, source, outcome])
    this.hookSeconds.observe([event], micros / 1e6)
  }

  turnStarted({ sessionId }: Recorded): void {
    this.#running.add(sessionId)
  }

  turnEnded({ sessionId, type, content }: Recorded): void {
    this.#running.delete(sessionId)
    this.turns.add([type === 'error' ? 'failed' : content.status === 'canceled' ? 'canceled' : 'completed'])
    if (typeof content.duration_ms === 'number') this.turnSeconds.observe([], content.duration_ms / 1000)
  }

  /** A stopped session's interrupted turn has no end event. */
  sessionStopped(sessionId: string): void {
    this.#running.delete(sessionId)
  }

  bridgeDelivery({ state }: DeliveryStanding): void {
    this.bridgeDeliveries.add([state])
  }

  #automationRun(name: string, run: { trigger_id?: unknown; status?: unknown }): void {
    const isTrigger = run.trigger_id !== undefined
    if (name === 'automation.run.ended') this.automationRuns.add([isTrigger ? 'trigger' : 'job', String(run.status)])
    else if (name === 'automation.run.created' && isTrigger) this.triggerFires.add([])
  }

  #streams(route: string): boolean {
    this.#streaming ??= new Set(
      this.kernel.collect(Collected.routes).flatMap(({ entry: { route: one } }) => {
        return one.contentType === 'text/event-stream' || 101 in one.replies ? [`${one.method} ${one.path}`] : []
      }),
    )
    return this.#streaming.has(route)
  }
}
