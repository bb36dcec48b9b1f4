import * as assert from 'uvu/assert'
import type { TaskRun } from '../../../../schemas/tasks.js'
import type { Reply } from '../../../harness/kernel.js'
import type { Dice } from '../../../kernel/fixtures/dice.js'
import { type Agent, type Scene, scene } from './scene.js'

const LEASE_S = 60
const AGENTS = 4

type Status = 'queued' | 'claimed' | 'running' | 'completed' | 'failed' | 'canceled' | 'needs_attention'

/** What is believed of a run. */
interface Believed {
  readonly task: string
  readonly id: string
  readonly maxAttempts: number
  readonly attempt: number
  status: Status
  holder: string | undefined
  /** Epoch milliseconds. */
  until: number
  recoveries: number
}

const FINAL: readonly Status[] = ['completed', 'failed', 'canceled']

/** One history. What has expired is whatever the sweep has made of it, within what the rules allow; all else is known exactly. */
export class History {
  readonly #runs = new Map<string, Believed>()
  /** The runs that retries queued, by the run that was retried. */
  readonly #retries = new Map<string, string>()
  readonly #trace: string[] = []
  #agents: Agent[] = []
  #world!: Scene

  constructor(
    private readonly roll: Dice,
    private readonly steps: number,
  ) {}

  /** The world after the last kill. */
  get world(): Scene {
    return this.#world
  }

  /** In a world of its own. */
  async play(): Promise<void> {
    try {
      await this.playIn(await scene())
    } finally {
      await this.#world.close()
    }
  }

  /** In a world in which nothing waits and nothing is held, which it leaves so; the world that is there after its last kill. */
  async playIn(world: Scene): Promise<Scene> {
    this.#world = world
    try {
      while (this.#agents.length < AGENTS) this.#agents.push(this.#world.agent())
      for (let step = 0; step < this.steps; step++) {
        await this.#step()
        this.#compare()
      }
      await this.#clear()
    } catch (error) {
      ;(error as Error).message += `\n${this.#trace.slice(-30).join('\n')}`
      throw error
    }
    return this.#world
  }

  /** Whoever holds a run or waits for one has none any more. */
  async #clear(): Promise<void> {
    this.#settle()
    for (const run of this.#runs.values()) {
      if (FINAL.includes(run.status)) continue
      assert.is((await this.#world.post(`/api/task-runs/${run.id}/cancel`)).status, 200, `cancel ${run.id}`)
      Object.assign(run, { status: 'canceled', holder: undefined })
    }
    this.#compare()
    assert.equal(
      await this.#totals(''),
      await this.#totals('?scope=global'),
      'totals that are kept, and those of the table',
    )
    for (const agent of this.#agents) await this.#world.stop(agent)
  }

  #step(): Promise<void> {
    const held = [...this.#runs.values()].filter(run => run.holder !== undefined)
    const any = [...this.#runs.values()]
    switch (this.roll.upTo(12)) {
      case 0:
      case 1:
        return this.#queue()
      case 2:
      case 3:
      case 4:
        return this.#claim(this.roll.of(this.#agents))
      case 5:
      case 6:
      case 7:
        return held.length > 0 ? this.#act(this.roll.of(held)) : this.#queue()
      // Whoever it is, also one that never had it.
      case 8:
        return any.length > 0 ? this.#act(this.roll.of(any), this.roll.of(this.#agents)) : this.#queue()
      case 9:
        return this.#wait()
      case 10:
        return this.#end()
      default:
        return this.roll.upTo(3) === 0 ? this.#kill() : this.#operate()
    }
  }

  async #queue(): Promise<void> {
    const maxAttempts = 1 + this.roll.upTo(3)
    const made = await this.#world.queued({ max_attempts: maxAttempts })
    this.#note(`queue ${made.run} of at most ${maxAttempts}`)
    this.#believe({ task: made.task, id: made.run, maxAttempts, attempt: 1 })
  }

  async #claim(agent: Agent): Promise<void> {
    const reply = await agent.claim({ lease_seconds: LEASE_S })
    this.#note(`claim by ${agent.id}: ${reply.status} ${reply.body?.claim?.run.id ?? reply.body?.code ?? ''}`)
    this.#settle()
    const own = [...this.#runs.values()].find(run => run.holder === agent.id && run.id !== reply.body?.claim?.run.id)
    if (reply.status === 409) {
      assert.is(reply.body.code, 'AUTONOMY_LEASE_ALREADY_HELD')
      assert.ok(own, 'a session that holds nothing is refused a claim')
      return
    }
    assert.not.ok(own, `${agent.id} holds ${own?.id} and got another run`)
    if (reply.status === 204) return
    assert.is(reply.status, 200)
    const run = this.#runs.get(reply.body.claim.run.id) as Believed
    assert.is(run.status, 'queued', `${run.id} was given away twice, or was over`)
    Object.assign(run, { status: 'claimed', holder: agent.id, until: this.#now + LEASE_S * 1000 })
  }

  async #act(run: Believed, agent: Agent = this.#agentOf(run)): Promise<void> {
    const what = this.roll.of(['complete', 'fail', 'release', 'heartbeat', 'heartbeat', 'start'])
    const body = what === 'fail' ? { error: 'no' } : what === 'heartbeat' ? { lease_seconds: LEASE_S } : {}
    const mayDo = run.holder === agent.id && run.until > this.#now
    const reply = await agent.act(what, run.id, body)
    this.#note(`${what} ${run.id} by ${agent.id}: ${reply.status} ${reply.body.code ?? ''}`)
    assert.is(
      reply.status === 200,
      mayDo,
      `${what} of ${run.id} by ${agent.id} was ${reply.status}; holder ${run.holder}`,
    )
    if (!mayDo) return
    if (what === 'heartbeat') run.until = this.#now + LEASE_S * 1000
    else if (what === 'start') run.status = 'running'
    else
      Object.assign(run, {
        status: { complete: 'completed', fail: 'failed', release: 'queued' }[what],
        holder: undefined,
      })
  }

  async #wait(): Promise<void> {
    const ms = this.roll.of([1000, 20_000, 45_000, 61_000])
    this.#note(`wait ${ms} ms`)
    await this.#world.pass(ms)
    this.#settle()
  }

  /** A session is no more; another one comes in its place. */
  async #end(): Promise<void> {
    const at = this.roll.upTo(this.#agents.length)
    const agent = this.#agents[at] as Agent
    const how = this.roll.of(['stopped', 'crashed'] as const)
    this.#note(`${agent.id} ${how}`)
    // What has expired, the sweep may take back before the end of the session does.
    await this.#world.pass(15_000)
    this.#settle()
    await this.#world.stop(agent, how)
    for (const run of this.#runs.values())
      if (run.holder === agent.id)
        Object.assign(run, { holder: undefined, status: how === 'crashed' ? 'needs_attention' : 'queued' })
    this.#agents[at] = this.#world.agent()
  }

  async #kill(): Promise<void> {
    this.#note('kill the daemon')
    this.#world = await this.#world.killed()
    this.#agents = this.#agents.map(() => this.#world.agent())
    this.#settle()
    for (const run of this.#runs.values())
      if (run.holder !== undefined)
        Object.assign(run, { holder: undefined, status: run.status === 'claimed' ? 'queued' : 'failed' })
  }

  async #operate(): Promise<void> {
    const run = this.roll.of([...this.#runs.values(), undefined])
    if (!run) return this.#queue()
    const what = this.roll.of(['release', 'fail', 'recover', 'retry', 'cancel'] as const)
    this.#settle()
    const url = what === 'cancel' ? `/api/task-runs/${run.id}/cancel` : `/api/runs/${run.id}/${what}`
    const reply = await this.#world.post(url, what === 'retry' ? {} : { reason: 'so it is' })
    this.#note(`${what} ${run.id} by the operator: ${reply.status} ${reply.body.code ?? ''}`)
    if (reply.status === 429) return
    const from = {
      release: ['claimed'],
      fail: ['queued', 'claimed'],
      recover: ['needs_attention'],
      retry: ['failed'],
      cancel: ALIVE,
    }
    const ofTask = [...this.#runs.values()].filter(other => other.task === run.task)
    const isOpen = ofTask.some(other => other !== run && !FINAL.includes(other.status))
    const isOver = ['completed', 'canceled'].includes(ofTask.at(-1)?.status ?? '')
    const follows = what === 'retry' || what === 'recover'
    // A retry of the same run is the same request, whatever became of the run that it queued.
    const retried = what === 'retry' && run.status === 'failed' ? this.#retries.get(run.id) : undefined
    const may = retried !== undefined || (from[what].includes(run.status) && !(follows && (isOpen || isOver)))
    if (what === 'retry' && reply.body.code === 'task_chain_too_long') return
    assert.is(reply.status < 300, may, `${what} of ${run.id}, which is ${run.status}, was ${reply.status}`)
    if (!may) return
    if (what === 'release') Object.assign(run, { status: 'queued', holder: undefined })
    else if (what === 'cancel') Object.assign(run, { status: 'canceled', holder: undefined })
    else if (what === 'fail' || what === 'recover') Object.assign(run, { status: 'failed', holder: undefined })
    if (!follows) return
    const next: Reply = reply.body.run
    if (retried !== undefined) assert.is(next.id, retried, `the run that a second retry of ${run.id} gives`)
    if (what === 'retry') this.#retries.set(run.id, next.id)
    if (!this.#runs.has(next.id))
      this.#believe({ task: run.task, id: next.id, maxAttempts: run.maxAttempts, attempt: next.attempt })
  }

  async #totals(query: string): Promise<Reply> {
    return (await this.#world.request('GET', `/api/observe/tasks/dashboard${query}`)).body.dashboard.totals
  }

  /** Takes over what a sweep made of expired leases, where the rules allow it. */
  #settle(): void {
    for (const run of this.#runs.values()) {
      if (run.holder === undefined || run.until > this.#now) continue
      const actual = this.#read(run)
      const same = actual.status === run.status && actual.session_id === run.holder
      if (same && actual.recovery_count === run.recoveries) continue
      const left = run.attempt + run.recoveries < run.maxAttempts
      const expected = left ? ['queued', run.recoveries + 1] : ['needs_attention', run.recoveries]
      // A session may have claimed it again since.
      const status = actual.status === 'claimed' ? 'queued' : actual.status
      assert.equal([status, actual.recovery_count], expected, `${run.id} after its lease has expired`)
      Object.assign(run, { status: expected[0], recoveries: expected[1], holder: undefined })
    }
  }

  #compare(): void {
    this.#settle()
    const holders = new Set<string>()
    for (const run of this.#runs.values()) {
      const actual = this.#read(run)
      assert.equal([actual.status, actual.recovery_count], [run.status, run.recoveries], run.id)
      if (run.holder === undefined) continue
      assert.is(actual.session_id, run.holder, run.id)
      assert.not.ok(holders.has(run.holder), `${run.holder} holds two runs`)
      holders.add(run.holder)
    }
  }

  #read(run: Believed): TaskRun {
    const actual = this.#world.told(run.id)
    assert.ok(actual, `run ${run.id} is lost`)
    return actual
  }

  #believe(run: Pick<Believed, 'task' | 'id' | 'maxAttempts' | 'attempt'>): void {
    this.#runs.set(run.id, { ...run, status: 'queued', holder: undefined, until: 0, recoveries: 0 })
  }

  #agentOf = (run: Believed): Agent => this.#agents.find(({ id }) => id === run.holder) ?? this.roll.of(this.#agents)

  get #now(): number {
    return this.#world.clock.now()
  }

  #note(text: string): void {
    this.#trace.push(text)
  }
}

const ALIVE: readonly Status[] = ['queued', 'claimed', 'running', 'needs_attention']
