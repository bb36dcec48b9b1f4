import { type Clock, type Fault, type Ids, iso } from '../../../kernel/plugin.js'
import type { PermissionMode } from '../../agents/api.js'
import { permissionDenied } from '../acp/error.js'
import type { PermissionParams, ToolCallFields } from '../acp/schemas.js'
import { SessionErrors } from '../api.js'
import type { EventContent } from '../events.js'
import { Asking } from './asking.js'
import { PathRefused, resolveInside, type Territory } from './paths.js'
import * as rules from './permission-rules.js'

/** Requests of one session that may wait for a person at the same time, and paths that one may name. */
const MAX_PENDING = 16
const MAX_PATHS = 100
const MAX_REMEMBERED = 1000

interface Concluded {
  readonly reply: rules.PermissionOutcome
  readonly allowed: boolean
}

/** What permissions need of their session. */
export interface PermissionContext {
  readonly mode: PermissionMode
  readonly territory: Territory
  readonly clock: Clock
  readonly ids: Ids
  /** Milliseconds that a request waits for a person; then it is rejected once. */
  readonly timeoutMs: number
  /** The turn that runs. */
  turnId(): string | undefined
  /** What earlier updates said about a tool call. */
  known(toolCallId: string): Partial<ToolCallFields> | undefined
  /** Asks the `permission` gate. */
  gate(kind: string, title: string): Promise<Fault | undefined>
  record(turnId: string, content: EventContent): void
  /** Writes a warning into the journal. */
  warn(turnId: string, content: EventContent): void
}

/** A request that waits for a person. */
export interface PendingPermission {
  readonly requestId: string
  readonly turnId: string
  readonly title: string
  readonly kind: string
  readonly createdAt: number
  readonly options: readonly rules.PermissionOption[]
}

interface Waiting extends PendingPermission {
  /** The first call decides; later ones do nothing. */
  settle(verdict: Verdict): void
  /** Settled, judged and in the journal: was it allowed. */
  readonly done: Promise<boolean>
}

interface Verdict {
  readonly decision: rules.Decision | 'cancelled'
  readonly by: 'mode' | 'limit' | 'workspace' | 'remembered' | 'person' | 'timeout' | 'hook' | 'cancel'
  readonly note?: string
}

/** An answered request, which lets through what the mode by itself would not. */
interface Grant {
  readonly action: rules.WantedAction
  readonly canonical: readonly string[]
  readonly lasting: boolean
}

/** The permissions of one session. "Always" answers are kept here, so they end with the session's process. */
export class Permissions {
  readonly #waiting = new Map<string, Waiting>()
  readonly #remembered = new Map<string, 'allow-always' | 'reject-always'>()
  #grants: Grant[] = []
  /** Requests that a person is asked, or will be when their paths were looked at. */
  #open = 0
  readonly asking: Asking

  constructor(private readonly context: PermissionContext) {
    this.asking = new Asking(context)
  }

  get pending(): readonly PendingPermission[] {
    return [...this.#waiting.values()]
  }

  /** `session/request_permission`. */
  async request(params: PermissionParams, signal: AbortSignal): Promise<rules.PermissionOutcome> {
    const turnId = this.context.turnId()
    await this.asking.pace()
    if (turnId === undefined || this.context.turnId() !== turnId) return rules.CANCELLED
    const { toolCall: call, options = [] } = params
    const action = rules.wantedAction(call, call && this.context.known(call.toolCallId))
    const asks =
      rules.decideByMode(this.context.mode, action.kind) === 'ask' && !this.#remembered.has(rules.subjectOf(action))
    const excess = this.#excess(action, asks)
    if (excess !== undefined) {
      this.asking.refuse(excess)
      return rules.outcomeOf(rules.optionFor(options, 'reject-once'))
    }
    if (asks) this.#open++
    try {
      return await this.#decide(turnId, action, call?.toolCallId, options, signal)
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
  ): Promise<rules.PermissionOutcome> {
    const requestId = this.context.ids.id('per')
    const head = {
      request_id: requestId,
      ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
      title: bounded(action.title),
      kind: bounded(action.kind),
      ...(action.command !== undefined && { command: bounded(action.command) }),
      paths: action.paths.slice(0, 20).map(bounded),
      options: options.slice(0, 20).map(({ optionId, name, kind }) => ({ option_id: optionId, name, kind })),
    }
    const places = await this.#places(action)
    const automatic = await this.#automatic(action, places)
    if (automatic) {
      const verdict = automatic.decision.startsWith('allow') ? await this.#gated(action, automatic) : automatic
      return this.#conclude(turnId, head, action, places, options, verdict).reply
    }
    // Looking at its paths took a moment: what ended the turn meanwhile has answered all that waited then.
    if (this.context.turnId() !== turnId) return rules.CANCELLED
    const waiting = this.#wait(turnId, requestId, action, options, signal, async verdict => {
      const decided = verdict.decision.startsWith('allow') ? await this.#gated(action, verdict) : verdict
      return this.#conclude(turnId, { request_id: requestId }, action, places, options, decided)
    })
    const expires = iso(this.context.clock.now() + this.context.timeoutMs)
    this.context.record(turnId, { ...head, status: 'pending', expires_at: expires })
    return waiting
  }

  /** A person's answer. Resolves when it is in the journal, with whether it was allowed in the end. */
  async answer(requestId: string, turnId: string, decision: rules.Decision): Promise<boolean> {
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
    for (const waiting of [...this.#waiting.values()]) waiting.settle({ decision: 'cancelled', by: 'cancel' })
    this.#grants = this.#grants.filter(({ lasting }) => lasting)
  }

  /** May files be read. Throws an error of the protocol. */
  checkRead(): void {
    if (!rules.methodAllowed(this.context.mode, 'read')) throw denied('reading', this.context.mode)
  }

  /** May this canonical path be written, by mode or by a grant, which is used up. Throws an error of the protocol. */
  async checkWrite(target: string): Promise<void> {
    if (rules.methodAllowed(this.context.mode, 'write')) return this.#checkGate('edit', `write ${target}`)
    if (!this.#use(grant => rules.coversWrite(grant.action, grant.canonical, target))) {
      throw denied('writing', this.context.mode)
    }
  }

  /** May this command run, by mode or by a grant, which is used up. Throws an error of the protocol. */
  async checkCommand(argv: readonly string[]): Promise<void> {
    if (rules.methodAllowed(this.context.mode, 'terminal')) return this.#checkGate('execute', argv.join(' '))
    if (!this.#use(grant => rules.coversCommand(grant.action, argv))) {
      throw denied('running commands', this.context.mode)
    }
  }

  #use(covers: (grant: Grant) => boolean): boolean {
    const index = this.#grants.findIndex(covers)
    const grant = this.#grants[index]
    if (!grant) return false
    if (!grant.lasting) this.#grants.splice(index, 1)
    return true
  }

  async #checkGate(kind: string, title: string): Promise<void> {
    const refusal = await this.context.gate(kind, title)
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

  async #automatic(action: rules.WantedAction, places: readonly string[] | undefined): Promise<Verdict | undefined> {
    if (!places) return { decision: 'reject-once', by: 'workspace', note: 'it names a path outside of the workspace' }
    const byMode = rules.decideByMode(this.context.mode, action.kind)
    if (byMode !== 'ask') return { decision: byMode === 'allow' ? 'allow-once' : 'reject-once', by: 'mode' }
    const remembered = this.#remembered.get(rules.subjectOf(action))
    if (remembered) return { decision: remembered, by: 'remembered' }
    return undefined
  }

  /** Nothing is granted before the gate was asked; who refuses there has the last word. */
  async #gated(action: rules.WantedAction, verdict: Verdict): Promise<Verdict> {
    const refusal = await this.context.gate(action.kind, action.title)
    return refusal ? { decision: 'reject-once', by: 'hook', note: refusal.message } : verdict
  }

  #wait(
    turnId: string,
    requestId: string,
    action: rules.WantedAction,
    options: readonly rules.PermissionOption[],
    signal: AbortSignal,
    conclude: (verdict: Verdict) => Promise<Concluded>,
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
      return conclude(verdict)
    })
    const done = concluded.then(({ allowed }) => allowed)
    // Whoever answered awaits it; nobody did when the turn was cancelled.
    done.catch(() => {})
    const { title, kind } = action
    this.#waiting.set(requestId, { requestId, turnId, title, kind, createdAt: clock.now(), options, settle, done })
    return concluded.then(({ reply }) => reply)
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
    // While a person or the gate was asked the turn may have ended.
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
    if (allowed) this.#grant({ action, canonical: places ?? [], lasting: decision === 'allow-always' })
    if (decision === 'allow-always' || decision === 'reject-always') {
      if (this.#remembered.size < MAX_REMEMBERED) this.#remembered.set(rules.subjectOf(action), decision)
    }
    return { reply: rules.outcomeOf(option), allowed }
  }

  #grant(grant: Grant): void {
    const subject = rules.subjectOf(grant.action)
    const known = this.#grants.some(({ lasting, action }) => lasting && rules.subjectOf(action) === subject)
    if (!known && this.#grants.length < MAX_REMEMBERED) this.#grants.push(grant)
  }
}

function denied(what: string, mode: PermissionMode) {
  return permissionDenied(
    `permission denied: ${what} is not allowed in mode ${mode}; ask with session/request_permission first`,
  )
}

function bounded(text: string): string {
  return text.length > 4096 ? `${text.slice(0, 4096)}…` : text
}
