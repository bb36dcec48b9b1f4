import { resolve } from 'node:path'
import { type Actor, iso } from '../../../../kernel/plugin.js'
import type { PermissionMode } from '../../../agents/agents/api.js'
import { permissionDenied } from '../acp/error.js'
import type { PermissionParams } from '../acp/schemas.js'
import type { EventContent } from '../events.js'
import type { ToolCall } from '../turn/tool-calls.js'
import { Asking } from './asking.js'
import { AskedCalls, Grants, MAX_REMEMBERED } from './grants.js'
import { OWN_OPTIONS } from './options.js'
import { OwnQuestions } from './own-questions.js'
import { PathRefused, type Place, placeOf, type Territory } from './paths.js'
import type { PendingPermission, PermissionContext } from './permission-context.js'
import * as rules from './permission-rules.js'
import { bounded, questionContent, type WholeQuestion, wholeOf } from './question.js'
import { ToolRights } from './tool-rights.js'
import { automaticVerdict, refusedMethod, type Verdict } from './verdict.js'
import { WaitingQuestions } from './waiting.js'

/** Requests of one session that may wait for a person at the same time, and paths that one may name. */
const MAX_PENDING = 16
const MAX_PATHS = 100

/** What an agent wants to do, with its paths judged. */
interface JudgedAction {
  readonly action: rules.WantedAction
  /** Canonical, in the order of the action's paths; empty where one of them is impossible. */
  readonly places: readonly Place[]
  /** Why no answer can allow it. */
  readonly impossible?: string | undefined
  readonly lacking?: string | undefined
}

/** A question that is put to a person, and what follows from the answer. */
interface Wish extends JudgedAction {
  readonly turnId: string
  readonly toolCallId?: string | undefined
  readonly options: readonly rules.PermissionOption[]
  readonly signal: AbortSignal
  /** An answer for once lets a later method through: the agent asked before it acts. */
  readonly isAhead: boolean
}

interface Concluded {
  readonly allowed: boolean
  readonly verdict: Verdict
  readonly option: rules.PermissionOption | undefined
}

/** A file or terminal method of the client. */
export interface ClientWish {
  readonly action: rules.WantedAction
  /** The file, or the folder of a command. */
  readonly place: Place
  /** The file as the agent named it, which its tool call may repeat. */
  readonly named?: string
  /** Reads the text that a write replaces, once the mode leaves it to answers; undefined: there is none. */
  readonly look?: () => Promise<string | undefined>
  /** The action with what only a question needs. */
  readonly detail?: (before: string | undefined) => rules.WantedAction
  /** Does an earlier answer allow it; one for once is used up. */
  readonly isGranted: (grants: Grants, before: string | undefined) => boolean
}

/** The permissions of one session. "Always" answers are kept here, so they end with the session's process. */
export class Permissions {
  readonly #waiting: WaitingQuestions
  readonly #remembered = new Map<string, 'allow-always' | 'reject-always'>()
  readonly #grants = new Grants()
  readonly #asked = new AskedCalls()
  /** Requests that a person is asked, or will be when a hook was. */
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
    this.#waiting = new WaitingQuestions(context)
    this.own = new OwnQuestions(context, turnId => this.#waiting.expire(turnId))
  }

  get territory(): Territory {
    return this.context.territory
  }

  /** Questions of a turn which nobody answered in time. */
  expiredIn(turnId: string): number {
    return this.#waiting.expiredIn(turnId)
  }

  /** Counts a question of a turn that was asked beside those for permission. */
  expire(turnId: string): void {
    this.#waiting.expire(turnId)
  }

  /**
   * Was a call that changes something carried out without a question although the mode wants one. Only the agent
   * can ask: what its own tools do without asking, nothing here holds up.
   */
  wasUnasked({ id, kind, title, fields }: Pick<ToolCall, 'id' | 'kind' | 'title' | 'fields'>): boolean {
    const mode = this.guardedBy !== undefined && this.mode === 'approve-all' ? 'approve-reads' : this.mode
    const needsQuestion = rules.mustAsk(mode, kind) || this.tools.lacking(kind, { title }, fields) !== undefined
    const { paths } = rules.wantedAction(undefined, fields)
    const absolute = paths.map(path => resolve(this.territory.roots[0] ?? '/', path))
    return needsQuestion && !this.#asked.has(id, absolute)
  }

  /** What has to be asked before each operation, in every mode, for people. */
  get guardedBy(): string | undefined {
    return this.context.guards?.first?.by
  }

  /** The same, where the agent may not go on without. */
  get requiredGuard(): string | undefined {
    return this.context.guards?.required
  }

  get pending(): readonly PendingPermission[] {
    return [...this.#waiting.pending, ...this.own.pending]
  }

  /** `session/request_permission`. */
  async request(params: PermissionParams, signal: AbortSignal): Promise<rules.PermissionOutcome> {
    const turnId = this.context.turnId()
    const { toolCall: call, options = [] } = params
    this.#asked.add(call?.toolCallId)
    await this.asking.pace()
    if (turnId === undefined || this.context.turnId() !== turnId) return rules.CANCELLED
    const known = call && this.context.known(call.toolCallId)
    const action = rules.wantedAction(call, known)
    const lacking = this.tools.lacking(action.kind, call, known)
    const judged = { lacking, ...(await this.#judged(action)) }
    if (signal.aborted || this.context.turnId() !== turnId) return rules.CANCELLED
    const wish = { ...judged, turnId, toolCallId: call?.toolCallId, options, signal, isAhead: true }
    const { option } = (await this.#decide(wish, action.paths.length)) ?? {
      option: rules.optionFor(options, 'reject-once'),
    }
    return rules.outcomeOf(option)
  }

  /** A file or terminal method: allowed by mode, by an earlier answer, or by a person who is asked. Throws an error of the protocol. */
  async allow(wish: ClientWish, signal: AbortSignal): Promise<void> {
    await this.#allow(wish, signal)
    const { action, place, named } = wish
    if (action.kind === 'edit') this.#asked.addFile(place.path, ...(named === undefined ? [] : [named]))
  }

  async #allow({ action, place, look, detail, isGranted }: ClientWish, signal: AbortSignal): Promise<void> {
    const { kind } = action
    const turnId = this.context.turnId()
    this.#checkTool(kind as 'read' | 'edit' | 'execute')
    const byMode = rules.decideByMode(this.mode, kind, !place.isInside)
    // The daemon is outside of the sandbox: it would read for the agent what that hides, and the mode asks nobody.
    if (byMode === 'allow' && !place.isInside && this.territory.seen)
      throw permissionDenied(`permission denied: ${place.path} is hidden by the sandbox of this session`)
    if (byMode === 'allow') return kind === 'read' ? undefined : this.#checkGate(action)
    if (byMode === 'reject' || turnId === undefined) {
      if (turnId !== undefined) await this.#tellRefused(action)
      throw refusedMethod({ decision: 'reject-once', by: 'mode' }, this.mode, kind)
    }
    const before = await look?.()
    if (isGranted(this.#grants, before)) return
    await this.asking.pace()
    const whole = detail ? detail(before) : action
    if (signal.aborted || this.context.turnId() !== turnId) throw refusedMethod(CANCELED, this.mode, kind)
    const wish = { action: whole, places: [place], turnId, options: OWN_OPTIONS, signal, isAhead: false }
    const concluded = await this.#decide(wish, 1)
    if (!concluded) throw permissionDenied('permission denied: too many questions wait for an answer')
    if (!concluded.allowed) throw refusedMethod(concluded.verdict, this.mode, kind)
  }

  /** A person's answer. Resolves when it is in the journal, with whether it was allowed in the end. */
  async answer(requestId: string, turnId: string, decision: rules.Decision, actor: Actor): Promise<boolean> {
    if (this.own.has(requestId, turnId)) return this.own.answer(requestId, decision, actor)
    return this.#waiting.answer(requestId, turnId, decision)
  }

  /** The turn is over, or about to be: what waits is answered `cancelled`, what was allowed once is no longer. */
  endTurn(): void {
    this.asking.endTurn()
    this.own.endTurn()
    this.#waiting.endTurn()
    this.#grants.endTurn()
  }

  #checkTool(kind: 'read' | 'edit' | 'execute'): void {
    const turnId = this.context.turnId() ?? ''
    this.tools.check(kind, turnId, content => this.context.warn(turnId, content))
  }

  /** Hooks have what a mode refuses as they have what it allows; none of them can turn it round. */
  async #tellRefused(action: rules.WantedAction): Promise<void> {
    await this.context.gate({ ...askedOf(action), isRefused: true })
  }

  async #checkGate(action: rules.WantedAction): Promise<void> {
    const { refusal } = await this.context.gate(askedOf(action))
    if (refusal) throw permissionDenied(`permission denied: ${refusal.message}`)
  }

  /** Decides by itself or asks; undefined: it is more than is looked at, and was counted as such. */
  async #decide(wish: Wish, paths: number): Promise<Concluded | undefined> {
    const verdict = (action: rules.WantedAction) => this.#automatic(wish, action)
    const asks = verdict(wish.action) === undefined
    const excess = this.#excess(paths, asks)
    if (excess !== undefined) {
      this.asking.refuse(excess)
      return undefined
    }
    if (asks) this.#open++
    try {
      return await this.#gatedOrAsked(wish, await this.#gated(wish.action, verdict))
    } finally {
      if (asks) this.#open--
    }
  }

  async #gatedOrAsked(wish: Wish, verdict: Verdict | undefined): Promise<Concluded> {
    const requestId = this.context.ids.id('per')
    const { turnId, action, places, toolCallId, options, signal } = wish
    const outside = places.flatMap(({ isInside, path }) => (isInside ? [] : [path]))
    const head = wholeOf(action, outside)
    // What is decided without a person shows no diff: the tool call has it.
    if (verdict) return this.#conclude(wish, questionContent(requestId, toolCallId, head, options), verdict)
    const question: WholeQuestion = { ...head, diffs: await diffsOf(action) }
    // Hooks and diffs took a moment: what ended the turn meanwhile has answered all that waited then.
    if (signal.aborted || this.context.turnId() !== turnId)
      return { allowed: false, verdict: CANCELED, option: undefined }
    const createdAt = this.context.clock.now()
    const asked = { requestId, turnId, question, createdAt, options }
    const waiting = this.#waiting.wait(asked, signal, given =>
      this.#conclude(wish, { request_id: requestId, kind: action.kind }, given),
    )
    const expires_at = iso(createdAt + this.context.timeoutMs)
    const content = questionContent(requestId, toolCallId, question, options)
    this.context.record(turnId, { ...content, status: 'pending', expires_at })
    return waiting
  }

  /** Why an action is more than is looked at; undefined when it is not. */
  #excess(paths: number, asks: boolean): string | undefined {
    if (paths > MAX_PATHS) return `one names ${paths} paths, ${MAX_PATHS} are allowed`
    return asks && this.#open >= MAX_PENDING ? `${MAX_PENDING} wait for an answer already` : undefined
  }

  /** An action with its paths resolved. */
  async #judged(action: rules.WantedAction): Promise<JudgedAction> {
    if (action.paths.length > MAX_PATHS) return { action, places: [] }
    try {
      return { action, places: await Promise.all(action.paths.map(path => placeOf(this.territory, path))) }
    } catch (error) {
      if (error instanceof PathRefused) return { action, places: [], impossible: error.message }
      throw error
    }
  }

  #automatic({ places, impossible, lacking }: Wish, action: rules.WantedAction): Verdict | undefined {
    return automaticVerdict({
      ...{ mode: this.mode, action, lacking, impossible },
      isOutside: places.some(({ isInside }) => !isInside),
      isAttended: this.context.isAttended(),
      remembered: this.#remembered.get(subjectIn(action, places)),
    })
  }

  /** Nothing is granted, and nobody is asked, before the gate was: a person is not shown what a hook refuses anyway. */
  async #gated(
    action: rules.WantedAction,
    judged: (action: rules.WantedAction) => Verdict | undefined,
  ): Promise<Verdict | undefined> {
    const verdict = judged(action)
    if (verdict && !verdict.decision.startsWith('allow')) {
      if (verdict.by === 'mode') await this.#tellRefused(action)
      return verdict
    }
    const { judgedAs, isAllowed, refusal } = await this.context.gate(askedOf(action))
    if (refusal) return { decision: 'reject-once', by: 'hook', note: refusal.message }
    if (!verdict && isAllowed) return { decision: 'allow-once', by: 'hook' }
    // Another kind can only take away what its own allows.
    return verdict && judgedAs !== action.kind ? judged({ ...action, kind: judgedAs }) : verdict
  }

  /** Writes the decision down, keeps what it grants and finds the option that says it. */
  #conclude({ turnId, action, places, options, isAhead }: Wish, head: EventContent, given: Verdict): Concluded {
    // While a person was asked, or the gate, the turn may have ended.
    const verdict = this.context.turnId() === turnId ? given : { ...given, decision: 'cancelled' as const }
    const { decision, by, note } = verdict
    const option = rules.chooseOption(options, decision, by === 'mode')
    const allowed = decision.startsWith('allow') && option !== undefined
    this.context.record(turnId, {
      ...head,
      status: 'resolved',
      decision,
      resolved_by: by,
      ...(option && { option_id: option.optionId }),
      ...(note !== undefined && { note: bounded(note) }),
    })
    const isLasting = decision === 'allow-always'
    const canonical = places.map(({ path }) => path)
    if (allowed && (isAhead || isLasting)) this.#grants.add(action, canonical, isLasting)
    if (decision === 'allow-always' || decision === 'reject-always') {
      if (this.#remembered.size < MAX_REMEMBERED) this.#remembered.set(subjectIn(action, places), decision)
    }
    return { allowed, verdict, option }
  }
}

/** What the gate is told of an action. */
const askedOf = ({ kind: toolKind, title, command, written, argv, paths }: rules.WantedAction) => {
  const told = command ?? written
  const files = paths.length > 0 && { paths }
  return { toolKind, title, ...(told !== undefined && { command: told }), ...(argv && { argv }), ...files }
}

const CANCELED: Verdict = { decision: 'cancelled', by: 'cancel' }

/** What "always" is remembered for, by where its paths lead: a link may lead elsewhere later. */
const subjectIn = (action: rules.WantedAction, places: readonly Place[]) =>
  rules.subjectOf(places.length === 0 ? action : { ...action, paths: places.map(({ path }) => path) })

/** The diffs of an action; the library for them loads with the first one. */
async function diffsOf({ diffs }: rules.WantedAction): Promise<WholeQuestion['diffs']> {
  if (diffs.length === 0) return []
  const { fileDiffs } = await import('../questions/file-diff.js')
  return fileDiffs(diffs)
}
