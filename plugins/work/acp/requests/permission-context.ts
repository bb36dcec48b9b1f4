import type { Clock, Fault, Ids } from '../../../../kernel/plugin.js'
import type { PermissionMode } from '../../../agents/agents/api.js'
import type { ToolCallFields } from '../protocol/schemas.js'
import type { EventContent, OperationAsked } from './content.js'
import type { AgentGuards } from './guards.js'
import type { Territory } from './paths.js'
import type { PermissionOption } from './permission-rules.js'
import type { WholeQuestion } from './question.js'
import type { ToolRights } from './tool-rights.js'

/** The answer of the `permission` gate. */
export interface GateAnswer {
  /** A second kind that the mode has to judge. */
  readonly judgedAs: string
  /** Whether the request is allowed where the mode would ask a person. */
  readonly isAllowed: boolean
  readonly refusal?: Fault
}

/** The session as its permissions see it. */
export interface PermissionContext {
  readonly mode: PermissionMode
  /** Default: all tools. */
  readonly tools?: ToolRights
  readonly guards?: Pick<AgentGuards, 'first' | 'required'>
  readonly territory: Territory
  readonly clock: Clock
  readonly ids: Ids
  /** Milliseconds that a request waits for a person; then it is rejected once. */
  readonly timeoutMs: number
  /** The running turn. */
  turnId(): string | undefined
  /** A person can answer during this turn: it does not belong to a job or a task. */
  isAttended(): boolean
  /** The members of a tool call that earlier updates contained. */
  known(toolCallId: string): Partial<ToolCallFields> | undefined
  /** Asks the `permission` gate. */
  gate(wanted: OperationAsked): Promise<GateAnswer>
  record(turnId: string, content: EventContent): void
  /** Writes a warning into the journal. */
  warn(turnId: string, content: EventContent): void
}

/** A request that waits for a person. */
export interface PendingPermission {
  readonly requestId: string
  readonly turnId: string
  /** The whole question, unbounded. */
  readonly question: WholeQuestion
  readonly createdAt: number
  /** Epoch milliseconds. */
  readonly expiresAt: number
  readonly options: readonly PermissionOption[]
}
