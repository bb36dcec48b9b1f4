import { command } from '../../../../kernel/kit/commands/command-line.js'
import { type Clock, type Fault, type Ids, iso } from '../../../../kernel/plugin.js'
import type { ApprovalReply, PendingApproval } from '../../../../schemas/tools.js'
import { type ReasonCode, type ToolCaller, type ToolDescriptor, toolFault } from '../api.js'
import { digestOf } from '../digest.js'

/** Kept approvals and tokens; the oldest finished one is removed first. */
const MOST = 1000
/** Concurrent approvals of one session, so that one agent cannot use up the space of others. */
const MOST_OF_ONE = 50
/** Milliseconds for which the result of an approval can be read. */
const READABLE_MS = 10 * 60_000

export type Decision = 'allow' | 'reject'

/** Status of an approval; only `pending` can change. */
export type Status = 'pending' | 'approved' | 'rejected' | 'canceled' | 'timed_out'

/** A call that needs the approval of a person. */
export interface Waiting {
  readonly id: string
  readonly tool: ToolDescriptor
  readonly input: Readonly<Record<string, unknown>>
  readonly inputDigest: string
  readonly by: ToolCaller
  /** Epoch milliseconds. */
  readonly since: number
  readonly expiresAt: number
  status: Status
  /** `running`, `completed` or `failed` after the approval. */
  execution?: string
  result?: unknown
  error?: unknown
  /** Whether a caller waits and continues the call itself. */
  readonly waits: boolean
}

/** The call that a token is bound to. */
export interface Bound {
  readonly toolId: string
  readonly toolDigest: string
  readonly sessionId: string
  readonly inputDigest: string
}

interface Token extends Bound {
  readonly expiresAt: number
  used: boolean
}

/** Calls waiting for an approval, and tokens for single calls. In memory only: a restart ends their sessions. */
export class Approvals {
  readonly #waiting = new Map<string, Waiting>()
  readonly #settle = new Map<string, (status: Status) => void>()
  /** Decisions for the rest of a session, by session, then by tool and input. */
  readonly #lasting = new Map<string, Map<string, Decision>>()
  /** By digest, so that the daemon's memory does not contain usable tokens. */
  readonly #tokens = new Map<string, Token>()

  constructor(
    private readonly clock: Clock,
    private readonly ids: Ids,
    private readonly timeoutMs: () => number,
  ) {}

  /** Adds a waiting call. @throws Fault `tool_unavailable` beyond the limits */
  open(call: Pick<Waiting, 'tool' | 'input' | 'inputDigest' | 'by' | 'waits'>): Waiting {
    this.#forget()
    const same = [...this.#waiting.values()].find(
      ({ status, tool, inputDigest, by, waits }) =>
        status === 'pending' &&
        !waits &&
        !call.waits &&
        tool.id === call.tool.id &&
        inputDigest === call.inputDigest &&
        by.sessionId === call.by.sessionId,
    )
    // A repeated request without a waiting caller shares the existing approval.
    if (same) return same
    this.#makeRoom(call)
    const waiting: Waiting = {
      ...call,
      id: this.ids.id('tap'),
      since: this.clock.now(),
      expiresAt: this.clock.now() + this.timeoutMs(),
      status: 'pending',
    }
    this.#waiting.set(waiting.id, waiting)
    const timer = this.clock.timeout(this.timeoutMs(), () => this.#end(waiting, 'timed_out'), { unref: true })
    this.#settle.set(waiting.id, () => timer.cancel())
    return waiting
  }

  /** Resolves on approval; rejects with the reason otherwise. */
  async allowed(waiting: Waiting): Promise<void> {
    const { signal } = waiting.by
    const status = await new Promise<Status>(resolve => {
      this.onEnd(waiting, resolve)
      if (signal.aborted) this.#end(waiting, 'canceled')
      signal.addEventListener('abort', () => this.#end(waiting, 'canceled'), { once: true })
    })
    const refused = refusalOf(status, waiting.tool.id)
    if (refused) throw refused
  }

  /** Calls back at the end of an approval; immediately if it is over. */
  onEnd(waiting: Waiting, listener: (status: Status) => void): void {
    if (waiting.status !== 'pending') {
      listener(waiting.status)
      return
    }
    const before = this.#settle.get(waiting.id)
    this.#settle.set(waiting.id, status => {
      before?.(status)
      listener(status)
    })
  }

  find(id: string): Waiting | undefined {
    this.#forget()
    return this.#waiting.get(id)
  }

  pending(): Waiting[] {
    this.#forget()
    return [...this.#waiting.values()].filter(({ status }) => status === 'pending')
  }

  /** Returns false if it is over already. */
  decide(waiting: Waiting, decision: Decision): boolean {
    return this.#end(waiting, decision === 'allow' ? 'approved' : 'rejected')
  }

  /** Keeps a decision for the same tool and input until the session stops. */
  keepForSession({ by, tool, inputDigest }: Waiting, decision: Decision): void {
    if (by.sessionId === undefined) return
    const kept = this.#lasting.get(by.sessionId) ?? new Map<string, Decision>()
    this.#lasting.set(by.sessionId, kept)
    if (kept.size < MOST) kept.set(keyOf(tool.digest, inputDigest), decision)
  }

  /** The kept decision of a session. */
  ofSession({ sessionId, toolDigest, inputDigest }: Bound): Decision | undefined {
    return this.#lasting.get(sessionId)?.get(keyOf(toolDigest, inputDigest))
  }

  cancel(waiting: Waiting): boolean {
    return this.#end(waiting, 'canceled')
  }

  /** Cancels the approvals of an ended session and deletes its tokens. */
  endSession(sessionId: string): void {
    for (const waiting of this.#waiting.values()) if (waiting.by.sessionId === sessionId) this.#end(waiting, 'canceled')
    this.#lasting.delete(sessionId)
    for (const [key, token] of this.#tokens) if (token.sessionId === sessionId) this.#tokens.delete(key)
  }

  /** Creates a token for one call of a session. */
  mint(bound: Bound): { readonly token: string; readonly expiresAt: number } {
    this.#forget()
    const token = `svc_tool_${this.ids.hex(32)}`
    const expiresAt = this.clock.now() + this.timeoutMs()
    if (this.#tokens.size >= MOST) this.#tokens.delete(this.#tokens.keys().next().value as string)
    this.#tokens.set(digestOf(token), { ...bound, expiresAt, used: false })
    return { token, expiresAt }
  }

  /** Spends a token. Throws `tool_denied` with the reason if it is invalid; a mismatched call does not spend it. */
  redeem(candidate: string, call: Bound): void {
    const refuse = (reason: ReasonCode, text: string) =>
      toolFault('tool_denied', [reason], text, { toolId: call.toolId })
    const token = this.#tokens.get(digestOf(candidate))
    if (!token) throw refuse('approval_token_mismatch', 'this token was not issued here, or expired long ago')
    const isSame = (Object.keys(call) as (keyof Bound)[]).every(name => token[name] === call[name])
    if (!isSame) throw refuse('approval_token_mismatch', 'this token is for another tool, session or input')
    if (token.used)
      throw refuse('approval_token_replayed', 'this token was already used; a token is valid for one call')
    if (token.expiresAt <= this.clock.now()) throw refuse('approval_token_expired', 'this token has expired')
    token.used = true
  }

  #makeRoom({ by, tool }: Pick<Waiting, 'by' | 'tool'>): void {
    const all = [...this.#waiting.values()]
    const isOpen = ({ status }: Waiting) => status === 'pending'
    const own = all.filter(one => isOpen(one) && one.by.sessionId === by.sessionId).length
    const isFull = own >= MOST_OF_ONE || all.filter(isOpen).length >= MOST
    if (isFull)
      throw toolFault('tool_unavailable', ['approval_unreachable'], `${own} calls of this session wait for a person`, {
        toolId: tool.id,
        next: command('tool approvals'),
      })
    const over = all.length >= MOST ? all.find(one => !isOpen(one)) : undefined
    if (over) this.#waiting.delete(over.id)
  }

  #end(waiting: Waiting, status: Status): boolean {
    if (waiting.status !== 'pending') return false
    waiting.status = status
    this.#settle.get(waiting.id)?.(status)
    this.#settle.delete(waiting.id)
    return true
  }

  /** Deletes approvals and tokens that are over for a while. */
  #forget(): void {
    const before = this.clock.now() - READABLE_MS
    for (const [id, { status, expiresAt }] of this.#waiting)
      if (status !== 'pending' && expiresAt < before) this.#waiting.delete(id)
    for (const [key, { expiresAt }] of this.#tokens) if (expiresAt < before) this.#tokens.delete(key)
  }
}

const keyOf = (toolDigest: string, inputDigest: string) => `${toolDigest} ${inputDigest}`

const REFUSALS: Readonly<Record<Status, readonly [ReasonCode, string] | undefined>> = {
  pending: undefined,
  approved: undefined,
  rejected: ['policy_denied', 'a person rejected this call'],
  canceled: ['approval_canceled', 'the question was withdrawn'],
  timed_out: ['approval_timed_out', 'nobody answered in time'],
}

function refusalOf(status: Status, toolId: string): Fault | undefined {
  const [reason, text] = REFUSALS[status] ?? []
  if (!reason) return undefined
  return toolFault(status === 'timed_out' ? 'tool_timed_out' : 'tool_denied', [reason], text, { toolId })
}

/** Wire form of an approval in lists. */
export const pendingToWire = ({ id, tool, by, input, inputDigest, expiresAt, status }: Waiting): PendingApproval => ({
  id,
  tool_id: tool.id,
  risk: tool.risk,
  ...(by.agentName === undefined ? {} : { agent_name: by.agentName }),
  ...(by.sessionId === undefined ? {} : { session_id: by.sessionId }),
  ...(by.workspaceId === undefined ? {} : { workspace_id: by.workspaceId }),
  input,
  input_digest: inputDigest,
  expires_at: iso(expiresAt),
  approval_status: status,
})

export const approvalToWire = ({ status, execution, result, error, expiresAt }: Waiting): ApprovalReply => ({
  approval_status: status,
  expires_at: iso(expiresAt),
  ...(execution === undefined ? {} : { execution_status: execution }),
  ...(result === undefined ? {} : { result }),
  ...(error === undefined ? {} : { error }),
})
