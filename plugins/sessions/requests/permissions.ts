import { type Actor, iso } from '../../../kernel/plugin.js'
import type { PermissionMode } from '../../agents/api.js'
import { permissionDenied } from '../acp/error.js'
import type { PermissionParams } from '../acp/schemas.js'
import { SessionErrors } from '../api.js'
import type { EventContent } from '../events.js'
import type { ToolCall } from '../turn/tool-calls.js'
import { Asking } from './asking.js'
import { AskedCalls, Grants, MAX_REMEMBERED } from './grants.js'
import { OwnQuestions } from './own-questions.js'
import { PathRefused, resolveInside } from './paths.js'
import type { PendingPermission, PermissionContext } from './permission-context.js'
import * as rules from './permission-rules.js'
import { bounded, questionContent } from './question.js'
import { ToolRights } from './tool-rights.js'
import { automaticVerdict, deniedByMode, type Verdict } from './verdict.js'

/** Requests of one session that may wait for a person at the same time, and paths that one may name. */
const MAX_PENDING = 16
const MAX_PATHS = 100

interface Concluded {
  readonly reply: rules.PermissionOutcome
  readonly allowed: boolean
}

interface Waiting extends PendingPermission {
  /** The first call decides; later ones do nothing. */
  settle(verdict: Verdict): void
  /** Settled, judged and in the journal: was it allowed. */
  readonly done: Promise<boolean>
}

/** The permissions of one session. "Always" answers are kept here, so they end with the session's process. */
export class Permissions {
  readonly #waiting = new Map<string, Waiting>()
  readonly #remembered = new Map<string, 'allow-always' | 'reject-always'>()
  readonly #grants = new Grants()
  readonly #asked = new AskedCalls()
  /** Of the newest turn in which that happened. */
  #expired = { turnId: '', count: 0 }
  /** Requests that a person is asked, or will be when their paths were looked at. */
  #open = 0
  readonly tools: ToolRights
  readonly asking: Asking
  /** Those that the daemon itself asks for this session. */
  readonly own: OwnQuestions

  /** The one in force. */
  mode: PermissionMode

  constructor(private readonly context: PermissionContext) {
    this.mode = context.mode
    this.tools = context.tools ?? new ToolRights(undefined)
    this.asking = new Asking(context)
    this.own = new OwnQuestions(context, turnId => this.#expire(turnId))
  }

  /** Questions of a turn which nobody answered in time. */
  expiredIn(turnId: string): number {
    return turnId === this.#expired.turnId ? this.#expired.count : 0
  }

  /**
   * Was a call that changes something carried out without a question although the mode wants one. Only the agent
   * can ask: what its own tools do without asking, nothing here holds up.
   */
  wasUnasked({ id, kind, title, fields }: Pick<ToolCall, 'id' | 'kind' | 'title' | 'fields'>): boolean {
    const mode = this.guardedBy !== undefined && this.mode === 'approve-all' ? 'approve-reads' : this.mode
    const needsQuestion = rules.mustAsk(mode, kind) || this.tools.lacking(kind, { title }, fields) !== undefined
    return needsQuestion && !this.#asked.has(id)
  }

  get guardedBy(): string | undefined {
    return this.context.guardedBy
  }

  get pending(): readonly PendingPermission[] {
    return [...this.#waiting.values(), ...this.own.pending]
  }

  /** `session/request_permission`. */
  async request(params: PermissionParams, signal: AbortSignal): Promise<rules.PermissionOutcome> {
    const turnId = this.context.turnId()
    this.#asked.add(params.toolCall?.toolCallId)
    await this.asking.pace()
    if (turnId === undefined || this.context.turnId() !== turnId) return rules.CANCELLED
    const { toolCall: call, options = [] } = params
    const action = rules.wantedAction(call, call && this.context.known(call.toolCallId))
    const lacking = this.tools.lacking(action.kind, call, call && this.context.known(call.toolCallId))
    const asks =
      lacking === undefined &&
      rules.decideByMode(this.mode, action.kind) === 'ask' &&
      !this.#remembered.has(rules.subjectOf(action))
    const excess = this.#excess(action, asks)
    if (excess !== undefined) {
      this.asking.refuse(excess)
      return rules.outcomeOf(rules.optionFor(options, 'reject-once'))
    }
    if (asks) this.#open++
    try {
      return await this.#decide(turnId, action, call?.toolCallId, options, signal, lacking)
    } finally {
      if (asks) this.#open--
    }
  }

  async #decide(
    turnId: string,
    action: rules.WantedAction,
    toolCallId: string | undefined,
    options: readonly rules.PermissionOption[],
    signal: AbortSignal,
    lacking: string | undefined,
  ): Promise<rules.PermissionOutcome> {
    const requestId = this.context.ids.id('per')
    const head = questionContent(requestId, toolCallId, action, options)
    const places = await this.#places(action)
    const judged = (action: rules.WantedAction) =>
      automaticVerdict({
        ...{ mode: this.mode, action, lacking, places },
        remembered: this.#remembered.get(rules.subjectOf(action)),
      })
    const verdict = await this.#gated(action, judged)
    if (verdict) return this.#conclude(turnId, head, action, places, options, verdict).reply
    // Paths and hooks took a moment: what ended the turn meanwhile has answered all that waited then.
    if (signal.aborted || this.context.turnId() !== turnId) return rules.CANCELLED
    const waiting = this.#wait(turnId, requestId, action, options, signal, verdict =>
      this.#conclude(turnId, { request_id: requestId }, action, places, options, verdict),
    )
    const expires = iso(this.context.clock.now() + this.context.timeoutMs)
    this.context.record(turnId, { ...head, status: 'pending', expires_at: expires })
    return waiting
  }

  /** A person's answer. Resolves when it is in the journal, with whether it was allowed in the end. */
  async answer(requestId: string, turnId: string, decision: rules.Decision, actor: Actor): Promise<boolean> {
    if (this.own.has(requestId, turnId)) return this.own.answer(requestId, decision, actor)
    const waiting = this.#waiting.get(requestId)
    if (!waiting || waiting.turnId !== turnId) throw SessionErrors.permission_not_found()
    if (decision.startsWith('allow') && !rules.optionFor(waiting.options, decision)) {
      const offered = waiting.options.map(({ kind }) => kind).join(', ')
      throw SessionErrors.permission_not_offered(`the agent offers no option for ${decision}, only: ${offered}`)
    }
    waiting.settle({ decision, by: 'person' })
    return waiting.done
  }

  /** The turn is over, or about to be: what waits is answered `cancelled`, what was allowed once is no longer. */
  endTurn(): void {
    this.asking.endTurn()
    this.own.endTurn()
    for (const waiting of [...this.#waiting.values()]) waiting.settle({ decision: 'cancelled', by: 'cancel' })
    this.#grants.endTurn()
  }

  /** May files be read. Throws an error of the protocol. */
  checkRead(): void {
    this.#checkTool('read')
    if (!rules.methodAllowed(this.mode, 'read')) throw deniedByMode('reading', this.mode)
  }

  /** May this canonical path be written, by mode or by a grant, which is used up. Throws an error of the protocol. */
  async checkWrite(target: string): Promise<void> {
    this.#checkTool('edit')
    if (rules.methodAllowed(this.mode, 'write')) return this.#checkGate('edit', `write ${target}`)
    if (!this.#grants.useForWrite(target)) throw deniedByMode('writing', this.mode)
  }

  /** May this command run, by mode or by a grant, which is used up. Throws an error of the protocol. */
  async checkCommand(argv: readonly string[]): Promise<void> {
    this.#checkTool('execute')
    if (rules.methodAllowed(this.mode, 'terminal')) {
      const line = argv.join(' ')
      return this.#checkGate('execute', line, line)
    }
    if (!this.#grants.useForCommand(argv)) throw deniedByMode('running commands', this.mode)
  }

  #checkTool(kind: 'read' | 'edit' | 'execute'): void {
    const turnId = this.context.turnId() ?? ''
    this.tools.check(kind, turnId, content => this.context.warn(turnId, content))
  }

  async #checkGate(kind: string, title: string, command?: string): Promise<void> {
    const { refusal } = await this.context.gate(kind, title, command)
    if (refusal) throw permissionDenied(`permission denied: ${refusal.message}`)
  }

  /** Why an action is more than is looked at; undefined when it is not. */
  #excess({ paths }: rules.WantedAction, asks: boolean): string | undefined {
    if (paths.length > MAX_PATHS) return `one names ${paths.length} paths, ${MAX_PATHS} are allowed`
    return asks && this.#open >= MAX_PENDING ? `${MAX_PENDING} wait for an answer already` : undefined
  }

  /** The places of an action in canonical form; undefined when one of them is outside. */
  async #places(action: rules.WantedAction): Promise<readonly string[] | undefined> {
    try {
      return await Promise.all(action.paths.map(path => resolveInside(this.context.territory, path)))
    } catch (error) {
      if (error instanceof PathRefused) return undefined
      throw error
    }
  }

  /** Nothing is granted, and nobody is asked, before the gate was: a person is not shown what a hook refuses anyway. */
  async #gated(
    action: rules.WantedAction,
    judged: (action: rules.WantedAction) => Verdict | undefined,
  ): Promise<Verdict | undefined> {
    const verdict = judged(action)
    if (verdict && !verdict.decision.startsWith('allow')) return verdict
    const { kind, title, command, written } = action
    const { judgedAs, refusal } = await this.context.gate(kind, title, command ?? written)
    if (refusal) return { decision: 'reject-once', by: 'hook', note: refusal.message }
    // Another kind can only take away what its own allows.
    return verdict && judgedAs !== kind ? judged({ ...action, kind: judgedAs }) : verdict
  }

  #wait(
    turnId: string,
    requestId: string,
    action: rules.WantedAction,
    options: readonly rules.PermissionOption[],
    signal: AbortSignal,
    conclude: (verdict: Verdict) => Concluded,
  ): Promise<rules.PermissionOutcome> {
    let settle: (verdict: Verdict) => void = () => {}
    const decided = new Promise<Verdict>(resolve => {
      settle = resolve
    })
    const { clock, timeoutMs } = this.context
    const timer = clock.timeout(timeoutMs, () => settle({ decision: 'reject-once', by: 'timeout' }), { unref: true })
    const abandon = () => settle({ decision: 'cancelled', by: 'cancel' })
    signal.addEventListener('abort', abandon, { once: true })
    const concluded = decided.then(verdict => {
      timer.cancel()
      signal.removeEventListener('abort', abandon)
      this.#waiting.delete(requestId)
      if (verdict.by === 'timeout') this.#expire(turnId)
      return conclude(verdict)
    })
    const done = concluded.then(({ allowed }) => allowed)
    // Whoever answered awaits it; nobody did when the turn was cancelled.
    done.catch(() => {})
    const { title, kind } = action
    const createdAt = clock.now()
    const command = action.command ?? action.written
    this.#waiting.set(requestId, { requestId, turnId, title, kind, command, createdAt, options, settle, done })
    return concluded.then(({ reply }) => reply)
  }

  #expire(turnId: string): void {
    this.#expired = { turnId, count: this.expiredIn(turnId) + 1 }
  }

  /** Writes the decision down, keeps what it grants and finds the option that says it. */
  #conclude(
    turnId: string,
    head: EventContent,
    action: rules.WantedAction,
    places: readonly string[] | undefined,
    options: readonly rules.PermissionOption[],
    verdict: Verdict,
  ): Concluded {
    // While a person was asked, or the gate, the turn may have ended.
    const decision = this.context.turnId() === turnId ? verdict.decision : 'cancelled'
    const option = rules.chooseOption(options, decision, verdict.by === 'mode')
    const allowed = decision.startsWith('allow') && option !== undefined
    this.context.record(turnId, {
      ...head,
      status: 'resolved',
      decision,
      resolved_by: verdict.by,
      ...(option && { option_id: option.optionId }),
      ...(verdict.note !== undefined && { note: bounded(verdict.note) }),
    })
    if (allowed) this.#grants.add(action, places ?? [], decision === 'allow-always')
    if (decision === 'allow-always' || decision === 'reject-always') {
      if (this.#remembered.size < MAX_REMEMBERED) this.#remembered.set(rules.subjectOf(action), decision)
    }
    return { reply: rules.outcomeOf(option), allowed }
  }
}
