import { iso, messageOf } from '../../../kernel/plugin.js'
import type { SessionFailure } from '../api.js'
import type { SessionsContext } from '../context.js'
import type { SessionLog } from '../journal/session-log.js'
import { summarize } from '../read/transcript.js'
import type { SessionRow } from '../table.js'
import { ToolCalls } from '../turn/tool-calls.js'
import type { Turn, TurnContext } from '../turn/turn.js'
import { Updates } from '../turn/updates.js'
import { infoOf } from '../wire.js'
import { renewed } from './briefing.js'
import { isProcessFailure, plainFailure, writeCrashBundle } from './crash-bundle.js'
import type { AgentFailure } from './failure.js'
import { type Launch, launch, type RunningAgent } from './launch.js'
import type { Watched } from './process-watch.js'
import { type Pulse, pulseOf } from './pulse.js'

const SUMMARY_CHARACTERS = 16_000

/** What a binding needs of its session. */
export interface BindingOwner {
  readonly id: string
  readonly log: SessionLog
  readonly row: SessionRow
  readonly turn: Turn | undefined
  /** Aborts when the session is being stopped. */
  readonly signal: AbortSignal
  /** The journal takes no more of what an agent tells. */
  readonly isFull: boolean
  /** A tool call of the running turn has its result. */
  toolEnded(): void
  /** The process ended between turns, by itself. */
  agentEnded(failure: AgentFailure, code: number | null): void
}

/** A session's process, while it has one, and what it says. */
export class AgentBinding implements Watched {
  readonly updates: Updates
  #running: RunningAgent | undefined
  /** Given with the next prompt: the agent does not know the conversation. */
  #preamble: string | undefined
  /** What the agent was told besides its definition; undefined when that cannot be known. */
  #briefed: string | undefined
  /** Calls and id of the turn that ran last, for what an agent says after its end. */
  #lastCalls = new ToolCalls()
  #lastTurnId = ''
  #toldFull = false
  /** Monotonic; of the last sign of life between turns. */
  #seenAt = 0
  /** The same in epoch milliseconds, for people. */
  #presentAt = 0
  /** Looks in a row at which it stood still. */
  #failedLooks = 0
  #isStale = false

  constructor(
    private readonly context: SessionsContext,
    private readonly owner: BindingOwner,
  ) {
    this.updates = new Updates(owner.log, () => this.#running?.agent.session.acpSessionId)
  }

  get running(): RunningAgent | undefined {
    return this.#running
  }

  /** What a turn needs of its session, whatever process that has by then. */
  turnContext(heartbeat: (at: number) => void): TurnContext {
    const { kernel, limits } = this.context
    const { log } = this.owner
    return {
      clock: kernel.clock,
      limits,
      append: (event, sync = false) => log.append(event, { sync }),
      sync: () => log.sync(),
      waitsForPerson: () => (this.#running?.permissions.pending.length ?? 0) > 0,
      pulse: () => this.pulse(),
      releaseWaiting: () => this.#running?.permissions.endTurn(),
      closing: id => this.updates.endTurn(id),
      failureOf: (failure, id) => this.failureOf(failure, id),
      heartbeat,
    }
  }

  /** What the system tells of the process; undefined without one. */
  pulse(): Pulse | undefined {
    return this.#running && pulseOf(this.#running.agent.handle.pid)
  }

  /** The process has stood still for long, and how often in a row that was seen; undefined: it runs, or there is none. */
  get standstill(): { readonly looks: number } | undefined {
    this.context.watch.look()
    return this.#isStale ? { looks: this.#failedLooks } : undefined
  }

  /** When the process showed life last, in epoch milliseconds; undefined without one. */
  get presentAt(): number | undefined {
    this.context.watch.look()
    return this.#running && this.#presentAt
  }

  get group(): number {
    return this.#running?.agent.handle.pid ?? 0
  }

  looked(runs: boolean): void {
    const { kernel, health } = this.context
    const before = this.#isStale
    if (runs) this.#seen()
    else {
      this.#failedLooks++
      this.#isStale = kernel.clock.monotonic() - this.#seenAt > health.staleAfterMs
    }
    if (this.#isStale !== before) health.note(this.owner.id)
  }

  #seen(): void {
    const { clock } = this.context.kernel
    this.#seenAt = clock.monotonic()
    this.#presentAt = clock.now()
    this.#failedLooks = 0
    this.#isStale = false
  }

  /** Texts of a prompt: before the first one what the agent has to know, and what it was told otherwise before. */
  texts(prompt: string): string[] {
    const preamble = this.#preamble
    this.#preamble = undefined
    const { text } = this.context.briefings.of(this.owner.id)
    const news = text === this.#briefed ? [] : [renewed(text)]
    this.#briefed = text
    return [...(preamble === undefined ? [] : [preamble]), ...news, prompt]
  }

  /** Starts the process, or starts it again and says so in the transcript. Throws AgentFailure or a fault. */
  async start(planned: Launch): Promise<RunningAgent> {
    const { owner } = this
    const { row } = owner
    const load = row.acp_session_id ?? undefined
    const briefing = this.context.briefings.of(row.id)
    const running = await launch(this.context, row, infoOf(row), planned, load, briefing.text, {
      signal: owner.signal,
      turnId: () => owner.turn?.id,
      known: id => (owner.turn?.calls ?? this.#lastCalls).get(id)?.fields,
      record: (turnId, content) => {
        owner.log.append({ type: 'permission', turnId, content }, { sync: true })
        owner.turn?.touch('permission')
      },
      warn: (turnId, content) => void owner.log.append({ type: 'runtime_warning', turnId, content }),
      update: params => this.#take(params),
      room: () => owner.log.room(),
      activity: () => owner.turn?.touch(),
    })
    this.#running = running
    this.#seen()
    this.context.watch.add(this)
    const { session } = running.agent
    this.#briefed = session.loaded && briefing.changed ? undefined : briefing.text
    this.#preamble = session.loaded ? undefined : await this.#firstWords(running, load !== undefined)
    if (load !== undefined) {
      const content = { marker: 'session_restarted', loaded: session.loaded, reason: session.loadFailure }
      owner.log.append({ type: 'transcript_marker.created', turnId: owner.turn?.id ?? '', content })
    }
    void running.agent.ended.then(async failure => {
      const { code } = running.agent.handle.alive ? { code: null } : await running.agent.handle.exited
      if (!running.agent.stopping && this.#running === running) owner.agentEnded(failure, code)
    })
    return running
  }

  /** Ends the process and what belongs to it. */
  async end(options: { readonly graceMs: number; readonly termMs: number }): Promise<void> {
    const running = this.#running
    this.#running = undefined
    this.#isStale = false
    this.context.watch.delete(this)
    if (!running) return
    running.permissions.endTurn()
    await Promise.all([running.terminals.close(), running.agent.stop(options)])
    this.context.slots.give(this.owner)
  }

  /** A turn is over: what comes now belongs to it still, until the next one begins. */
  endTurn(turn: Turn): void {
    this.updates.endTurn(turn.id)
    this.#seen()
    this.#lastCalls = turn.calls
    this.#lastTurnId = turn.id
  }

  /** A failure for people; where it is the process that failed, with a crash bundle. */
  async failureOf(failure: AgentFailure, turnId: string): Promise<SessionFailure> {
    const { kernel } = this.context
    const { row, signal } = this.owner
    if (!isProcessFailure(failure) || signal.aborted) return plainFailure(failure)
    const running = this.#running
    try {
      return await writeCrashBundle(`${kernel.home.logs}/crash-bundles`, failure, {
        sessionId: row.id,
        agentName: row.agent_name,
        workspaceId: row.workspace_id,
        turnId,
        argv: running?.argv ?? [],
        cwd: running?.cwd ?? row.workspace_path,
        env: running?.env ?? {},
        ...failure.lastWords,
        at: iso(kernel.clock.now()),
      })
    } catch (error) {
      kernel.log.error('a crash bundle could not be written', { id: row.id, error: messageOf(error) })
      return plainFailure(failure)
    }
  }

  async #firstWords(running: RunningAgent, again: boolean): Promise<string> {
    const summary = again ? await summarize(this.owner.log, SUMMARY_CHARACTERS, this.owner.turn?.sequence) : ''
    if (summary === '') return running.preamble
    return `${running.preamble}\n\nThis session was interrupted. The conversation so far, shortened:\n\n${summary}`
  }

  #take(params: unknown): void {
    const { owner } = this
    const target = this.#target()
    if (!owner.isFull) {
      this.updates.take(params, target)
      return
    }
    target.touched('left_out', 'the journal is full')
    if (this.#toldFull) return
    this.#toldFull = true
    const content = {
      warning: 'journal_full',
      text: 'the journal is full; what the agent tells is left out from here on',
    }
    owner.log.append({ type: 'runtime_warning', turnId: target.turnId, content })
  }

  #target() {
    const { turn } = this.owner
    return {
      turnId: turn?.id ?? this.#lastTurnId,
      calls: turn?.calls ?? this.#lastCalls,
      touched: (kind: string, detail: string) => turn?.touch(kind, detail),
      toolEnded: () => turn && this.owner.toolEnded(),
    }
  }
}
