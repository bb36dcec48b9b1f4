import { resolve } from 'node:path'
import { type Actor, iso } from '../../../../kernel/plugin.js'
import type { PermissionMode } from '../../../agents/agents/api.js'
import { permissionDenied } from '../protocol/error.js'
import type { PermissionParams, ToolCallFields } from '../protocol/schemas.js'
import { fileDiffs } from '../questions/file-diff.js'
import { Asking } from './asking.js'
import type { EventContent } from './content.js'
import { AskedCalls, Grants, MAX_REMEMBERED } from './grants.js'
import { OWN_OPTIONS } from './options.js'
import { OwnQuestions } from './own-questions.js'
import { locate, type PathLocation, PathRefused, type Territory } from './paths.js'
import type { PendingPermission, PermissionContext } from './permission-context.js'
import * as rules from './permission-rules.js'
import { bounded, questionContent, type WholeQuestion, wholeOf } from './question.js'
import { ToolRights } from './tool-rights.js'
import { automaticVerdict, refusedMethod, type Verdict } from './verdict.js'
import { WaitingQuestions } from './waiting.js'

/** Maximum pending requests of one session, and paths of one request. */
const MAX_PENDING = 16
const MAX_PATHS = 100

/** A requested operation with its checked paths. */
interface JudgedAction {
  readonly action: rules.WantedAction
  /** Canonical, in the order of the action's paths; empty when one of them is impossible. */
  readonly places: readonly PathLocation[]
  /** Reason for which no answer can allow it. */
  readonly impossible?: string | undefined
  readonly lacking?: string | undefined
}

/** A question to a person, and the effect of its answer. */
interface Wish extends JudgedAction {
  readonly turnId: string
  readonly toolCallId?: string | undefined
  readonly options: readonly rules.PermissionOption[]
  readonly signal: AbortSignal
  /** The agent asks before it acts, so a one-time answer allows one later client method. */
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
  readonly location: PathLocation
  /** The file as the agent named it, because its tool call may use the same name. */
  readonly named?: string
  /** Reads the text that a write replaces, once the mode leaves the decision to answers; undefined: the file does not exist. */
  readonly readBefore?: () => Promise<string | undefined>
  /** Adds the parts of the action that only a question needs. */
  readonly detail?: (before: string | undefined) => rules.WantedAction
  /** Whether an earlier answer allows it; uses up a one-time grant. */
  readonly isGranted: (grants: Grants, before: string | undefined) => boolean
}

/** A tool call of the agent, as far as the check for an unasked change needs it. */
export interface DoneCall {
  readonly id: string
  readonly kind: string
  readonly title: string
  readonly fields: Partial<ToolCallFields>
}

/** The permissions of one session. "Always" answers are kept here, so they end with the session's process. */
export class Permissions {
  readonly #waiting: WaitingQuestions
  readonly #remembered = new Map<string, 'allow-always' | 'reject-always'>()
  readonly #grants = new Grants()
  readonly #askedCalls = new AskedCalls()
  /** Number of requests that wait for the answer of a hook or a person. */
  #open = 0
  readonly tools: ToolRights
  readonly asking: Asking
  /** The daemon's own questions for this session. */
  readonly own: OwnQuestions

  /** The mode in force. */
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

  /** Number of questions of a turn that expired without an answer. */
  expiredIn(turnId: string): number {
    return this.#waiting.expiredIn(turnId)
  }

  /** Counts an expired question of a turn that was not a permission request. */
  expire(turnId: string): void {
    this.#waiting.expire(turnId)
  }

  /**
   * Whether a call made a change without the question that the mode requires. Only the agent can ask: the daemon cannot stop the
   * agent's own tools.
   */
  wasUnasked({ id, kind, title, fields }: DoneCall): boolean {
    const mode = this.guardedBy !== undefined && this.mode === 'approve-all' ? 'approve-reads' : this.mode
    const needsQuestion = rules.mustAsk(mode, kind) || this.tools.lacking(kind, { title }, fields) !== undefined
    const { paths } = rules.wantedAction(undefined, fields)
    const absolute = paths.map(path => resolve(this.territory.roots[0] ?? '/', path))
    return needsQuestion && !this.#askedCalls.has(id, absolute)
  }

  /** The guard that has to be asked before each operation in every mode, for people. */
  get guardedBy(): string | undefined {
    return this.context.guards?.first?.by
  }

  /** The guard without which the agent may not continue, for people. */
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
    this.#askedCalls.add(call?.toolCallId)
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

  /** Decides about a file or terminal method: by mode, by an earlier answer, or by a person. Throws an error of the protocol. */
  async allow(wish: ClientWish, signal: AbortSignal): Promise<void> {
    await this.#allow(wish, signal)
    const { action, location, named } = wish
    if (action.kind === 'edit') this.#askedCalls.addFile(location.path, ...(named === undefined ? [] : [named]))
  }

  async #allow({ action, location, readBefore, detail, isGranted }: ClientWish, signal: AbortSignal): Promise<void> {
    const { kind } = action
    const turnId = this.context.turnId()
    this.#checkTool(kind as 'read' | 'edit' | 'execute')
    const byMode = rules.decideByMode(this.mode, kind, !location.isInside)
    // The daemon acts outside of the sandbox: without this check it would read hidden files for the agent without a question.
    if (byMode === 'allow' && !location.isInside && this.territory.sightOf)
      throw permissionDenied(`permission denied: ${location.path} is hidden by the sandbox of this session`)
    if (byMode === 'allow') return kind === 'read' ? undefined : this.#checkGate(action)
    if (byMode === 'reject' || turnId === undefined) {
      if (turnId !== undefined) await this.#tellRefused(action)
      throw refusedMethod({ decision: 'reject-once', by: 'mode' }, this.mode, kind)
    }
    const before = await readBefore?.()
    if (isGranted(this.#grants, before)) return
    await this.asking.pace()
    const whole = detail ? detail(before) : action
    if (signal.aborted || this.context.turnId() !== turnId) throw refusedMethod(CANCELED, this.mode, kind)
    const wish = { action: whole, places: [location], turnId, options: OWN_OPTIONS, signal, isAhead: false }
    const concluded = await this.#decide(wish, 1)
    if (!concluded) throw permissionDenied('permission denied: too many questions wait for an answer')
    if (!concluded.allowed) throw refusedMethod(concluded.verdict, this.mode, kind)
  }

  /** A person's answer, with a reason for the agent. Resolves when it is in the journal, with whether it was allowed in the end. */
  async answer(
    requestId: string,
    turnId: string,
    decision: rules.Decision,
    actor: Actor,
    note?: string,
  ): Promise<boolean> {
    if (this.own.has(requestId, turnId)) return this.own.answer(requestId, decision, actor)
    return this.#waiting.answer(requestId, turnId, { decision, by: 'person', ...(note !== undefined && { note }) })
  }

  /** Answers the pending questions of a turn that ends with `cancelled`, and removes one-time grants. */
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

  /** Hooks also see requests that the mode refuses, but cannot change that decision. */
  async #tellRefused(action: rules.WantedAction): Promise<void> {
    await this.context.gate({ ...askedOf(action), isRefused: true })
  }

  async #checkGate(action: rules.WantedAction): Promise<void> {
    const { refusal } = await this.context.gate(askedOf(action))
    if (refusal) throw permissionDenied(`permission denied: ${refusal.message}`)
  }

  /** Decides automatically or asks; undefined: the request exceeded a limit and was counted as refused. */
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
    // A decision without a person needs no diff, because the tool call has it.
    if (verdict) return this.#conclude(wish, questionContent(requestId, toolCallId, head, options), verdict)
    const question: WholeQuestion = { ...head, diffs: await fileDiffs(action.diffs) }
    // The turn may have ended during the hooks and diffs; its end has already cancelled the requests that were pending then.
    if (signal.aborted || this.context.turnId() !== turnId)
      return { allowed: false, verdict: CANCELED, option: undefined }
    const createdAt = this.context.clock.now()
    const expiresAt = createdAt + this.context.timeoutMs
    const pending = { requestId, turnId, question, createdAt, expiresAt, options }
    const waiting = this.#waiting.wait(pending, signal, answer =>
      this.#conclude(wish, { request_id: requestId, kind: action.kind }, answer),
    )
    const content = questionContent(requestId, toolCallId, question, options)
    this.context.record(turnId, { ...content, status: 'pending', expires_at: iso(expiresAt) })
    return waiting
  }

  /** The exceeded limit of a request, for people; undefined when there is none. */
  #excess(paths: number, asks: boolean): string | undefined {
    if (paths > MAX_PATHS) return `one request has ${paths} paths, at most ${MAX_PATHS} are allowed`
    return asks && this.#open >= MAX_PENDING ? `${MAX_PENDING} wait for an answer already` : undefined
  }

  /** An action with its paths resolved. */
  async #judged(action: rules.WantedAction): Promise<JudgedAction> {
    if (action.paths.length > MAX_PATHS) return { action, places: [] }
    try {
      return { action, places: await Promise.all(action.paths.map(path => locate(this.territory, path))) }
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

  /** The gate runs before any grant or question: a person must not be asked about an operation that a hook refuses anyway. */
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
    // A second kind can only restrict the decision.
    return verdict && judgedAs !== action.kind ? judged({ ...action, kind: judgedAs }) : verdict
  }

  /** Records the decision, stores its grant and finds the matching option. */
  #conclude({ turnId, action, places, options, isAhead }: Wish, head: EventContent, answer: Verdict): Concluded {
    // The turn may have ended during the question or the gate.
    const verdict = this.context.turnId() === turnId ? answer : { ...answer, decision: 'cancelled' as const }
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

/** The description of an action for the gate. */
const askedOf = ({ kind: toolKind, title, command, written, argv, paths }: rules.WantedAction) => {
  const commandLine = command ?? written
  const files = paths.length > 0 && { paths }
  return {
    toolKind,
    title,
    ...(commandLine !== undefined && { command: commandLine }),
    ...(argv && { argv }),
    ...files,
  }
}

const CANCELED: Verdict = { decision: 'cancelled', by: 'cancel' }

/** The key of an "always" answer, with resolved paths, because a link may change its target later. */
const subjectIn = (action: rules.WantedAction, places: readonly PathLocation[]) =>
  rules.subjectOf(places.length === 0 ? action : { ...action, paths: places.map(({ path }) => path) })
