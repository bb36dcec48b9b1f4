import * as assert from 'uvu/assert'
import type { Reply } from '../../../harness/kernel.js'
import type { Dice } from '../../../kernel/fixtures/dice.js'
import { type Scene, scene } from './scene.js'

const MAX_ATTEMPTS = 2
const OVER = ['completed', 'failed', 'canceled']

interface Run {
  readonly id: string
  readonly attempt: number
  readonly part: string | undefined
  readonly group: string | undefined
  status: string
}

/** What the events of one task say of it, and nothing else does. */
class Told {
  readonly runs: Run[] = []
  readonly waitsFor = new Set<string>()
  readonly blocks = new Set<string>()
  isPaused = false
  isMarked = false

  constructor(events: readonly Reply[]) {
    for (const { event_type: name, run, payload = {} } of events) this.#take(name, run?.id, payload)
  }

  #take(name: string, id: string, payload: Reply): void {
    const run = this.runs.find(one => one.id === id)
    const becomes: Record<string, string> = {
      'task.run_claimed': 'claimed',
      'task.run_started': 'running',
      'task.run_completed': 'completed',
      'task.run_failed': 'failed',
      'task.run_operator_forced_fail': 'failed',
      'task.run_canceled': 'canceled',
      'task.run_released': 'queued',
      'task.run_needs_attention': 'needs_attention',
    }
    if (run && becomes[name]) {
      const wasStuck = run.status === 'needs_attention'
      run.status = becomes[name]
      if (wasStuck && !this.has('needs_attention')) this.isMarked = false
    }
    if (name === 'task.run_enqueued') {
      const { attempt, designation } = payload
      const part = designation && `${designation.group} ${designation.index}`
      this.runs.push({ id, attempt, part, group: designation?.group, status: 'queued' })
    }
    if (name === 'task.run_recovered_from_attention') {
      for (const one of this.runs) if (one.id === payload.previous_run_id) one.status = 'failed'
      this.isMarked = false
    }
    if (name === 'task.needs_attention' && !payload.reason.startsWith('part_failed')) this.isMarked = true
    if (name === 'task.recovered') this.isMarked = false
    if (name === 'task.paused') this.isPaused = true
    if (name === 'task.resumed') this.isPaused = false
    if (name === 'task.dependency_added') this.waitsFor.add(payload.depends_on_task_id)
    if (name === 'task.dependency_removed') this.waitsFor.delete(payload.depends_on_task_id)
    if (name === 'task.block.created') this.blocks.add(payload.block_id)
    if (name === 'task.block.cleared') this.blocks.delete(payload.block_id)
  }

  has(...statuses: readonly string[]): boolean {
    return this.runs.some(({ status }) => statuses.includes(status))
  }

  /** The run that counts or, of a fan-out, that of each part. */
  get latest(): Run[] {
    const last = this.runs.at(-1)
    if (last?.group === undefined) return last ? [last] : []
    const parts = this.runs.filter(({ group }) => group === last.group)
    return parts.filter(run => parts.findLast(({ part }) => part === run.part) === run)
  }
}

/** Random operations on tasks of a parent; after each, every status is compared with what the events alone say. */
export class StatusHistory {
  readonly #trace: string[] = []
  readonly #tasks: string[] = []
  readonly #before = new Map<string, string>()
  #parent = ''
  #made = 0

  constructor(
    private readonly roll: Dice,
    private readonly steps: number,
  ) {}

  async play(): Promise<void> {
    const world = await scene()
    try {
      await this.playIn(world)
    } finally {
      await world.close()
    }
  }

  /** In a world that may have other tasks. */
  async playIn(world: Scene): Promise<void> {
    const create = async (url: string) =>
      (await world.post(url, { title: 'work', scope: 'global', max_attempts: MAX_ATTEMPTS })).body.task.id
    this.#parent = await create('/api/tasks')
    const below = `/api/tasks/${this.#parent}/children`
    // The first is never worked on, so that the parent stays open.
    for (let n = 0; n < 4; n++) this.#tasks.push(await create(below))
    try {
      for (let step = 0; step < this.steps; step++) {
        await this.#step(world)
        await this.#compare(world)
      }
    } catch (error) {
      ;(error as Error).message += `\n${this.#trace.slice(-25).join('\n')}`
      throw error
    }
  }

  async #step(world: Scene): Promise<void> {
    const task = this.roll.of(this.#tasks.slice(1))
    const { runs = [] } = (await world.request('GET', `/api/tasks/${task}/runs`)).body
    const run: Reply = runs.length > 0 ? this.roll.of(runs) : undefined
    const key = `k${this.#made++}`
    const what = this.roll.of([
      'start',
      'fanOut',
      'work',
      'work',
      'work',
      'operate',
      'operate',
      'hold',
      'hold',
      'review',
    ])
    if (what === 'start') await this.#post(world, `/api/tasks/${task}/start`, { idempotency_key: key })
    else if (what === 'fanOut') {
      const designations = [{ brief: 'one' }, { brief: 'two' }]
      await this.#post(world, `/api/tasks/${task}/runs/fan-out`, { designations, idempotency_key: key })
    } else if (what === 'work' && run) await this.#work(world, task, run)
    else if (what === 'operate' && run) {
      const url = this.roll.of([
        `/api/runs/${run.id}/retry`,
        `/api/runs/${run.id}/recover`,
        `/api/runs/${run.id}/fail`,
        `/api/task-runs/${run.id}/cancel`,
        `/api/tasks/${task}/recover`,
      ])
      await this.#post(world, url, url.endsWith('fail') ? { reason: 'so it is' } : {})
      // Force operations are limited for each minute.
      await world.pass(60_000)
    } else if (what === 'hold') await this.#hold(world, task)
    else if (run) await this.#review(world, task, run)
  }

  /** A session claims the run, which it cannot while the task is held, and ends it in one way or another. */
  async #work(world: Scene, task: string, run: Reply): Promise<void> {
    const agent = world.agent()
    const { status } = await agent.claim({ run_id: run.id })
    this.#trace.push(`claim ${run.id}: ${status}`)
    const isClaimable = run.status === 'queued' && this.#before.get(task) === 'ready'
    if (run.status === 'queued')
      assert.is(status === 200, isClaimable || this.#before.get(task) === 'in_progress', task)
    if (status !== 200) return
    const how = this.roll.of(['complete', 'complete', 'fail', 'fail', 'release', 'crash'])
    this.#trace.push(`${how} ${run.id}`)
    if (how === 'crash') await world.stop(agent, 'crashed')
    else await agent.act(how, run.id, how === 'fail' ? { error: 'no' } : {})
  }

  async #hold(world: Scene, task: string): Promise<void> {
    const other = this.roll.of(this.#tasks.filter(id => id !== task))
    const { blocks = [] } = (await world.request('GET', `/api/tasks/${task}/blocks`)).body
    const open = blocks.find((block: Reply) => !block.cleared_at)
    const how = this.roll.upTo(8)
    if (how < 2) await this.#post(world, `/api/tasks/${this.#parent}/pause`, { reason: 'not now' })
    else if (how < 4) await this.#post(world, `/api/tasks/${this.#parent}/resume`)
    else if (how === 4) await this.#post(world, `/api/tasks/${task}/dependencies`, { depends_on_task_id: other })
    else if (how === 5) {
      const { status } = await world.request('DELETE', `/api/tasks/${task}/dependencies/${other}`)
      this.#trace.push(`independent ${task} ${other}: ${status}`)
    } else if (open) await this.#post(world, `/api/tasks/${task}/blocks/${open.id}/clear`)
    else await this.#post(world, `/api/tasks/${task}/blocks`, { kind: 'needs_input', reason: 'which one?' })
  }

  async #review(world: Scene, task: string, run: Reply): Promise<void> {
    const deadline_at = new Date(world.clock.now() + 3_600_000).toISOString()
    const about = { run_id: run.id, task_id: task, deadline_at }
    const id = (await this.#post(world, `/api/task-runs/${run.id}/reviews`, about)).review?.review_id
    if (id === undefined) return
    const outcome = this.roll.of(['approved', 'rejected'])
    const verdict = { outcome, reason: 'so it is', confidence: 1, delivery_id: `d${this.#made++}` }
    await this.#post(world, `/api/task-reviews/${id}/verdict`, { run_id: run.id, verdict })
  }

  async #post(world: Scene, url: string, body: object = {}): Promise<Reply> {
    const reply = await world.post(url, body)
    this.#trace.push(`${url} ${JSON.stringify(body)}: ${reply.status} ${reply.body?.code ?? ''}`)
    assert.ok(reply.status < 500, `${url}: ${JSON.stringify(reply.body)}`)
    return reply.body ?? {}
  }

  async #compare(world: Scene): Promise<void> {
    const told = new Map<string, Told>()
    for (const id of [this.#parent, ...this.#tasks]) {
      const { timeline } = (await world.request('GET', `/api/tasks/${id}/timeline?limit=1000`)).body
      told.set(id, new Told(timeline))
    }
    // A task may wait for one that comes later in the list.
    for (let round = 0; round < this.#tasks.length; round++)
      for (const id of this.#tasks) this.#before.set(id, this.#derive(told, id))
    for (const id of this.#tasks) {
      const { task } = await world.task(id)
      assert.is(task.status, this.#before.get(id), `status of ${id} (${task.needs_attention_reason ?? ''})`)
    }
  }

  #derive(told: ReadonlyMap<string, Told>, id: string): string {
    const task = told.get(id) as Told
    const before = this.#before.get(id) ?? 'ready'
    if (before === 'canceled' && !task.has('queued')) return before
    if (task.has('starting', 'running')) return 'in_progress'
    const { latest } = task
    const isOpen = task.has('queued', 'claimed', 'needs_attention')
    const failed = latest.filter(({ status }) => status === 'failed')
    const isPart = failed.some(({ part }) => part !== undefined)
    if (!isOpen && latest.length > 0) {
      if (failed.length === 0) return latest.some(({ status }) => status === 'completed') ? 'completed' : 'canceled'
      if (isPart && before === 'completed') return before
      if (failed.some(({ attempt }) => attempt >= MAX_ATTEMPTS)) return 'failed'
      if (isPart) return 'needs_attention'
    }
    if (!isOpen && OVER.includes(before)) return before
    if (task.isMarked || (task.has('needs_attention') && !task.has('queued', 'claimed'))) return 'needs_attention'
    const waits = [...task.waitsFor].some(other => this.#before.get(other) !== 'completed')
    return waits || task.blocks.size > 0 || task.isPaused || told.get(this.#parent)?.isPaused ? 'blocked' : 'ready'
  }
}
