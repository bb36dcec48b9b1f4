import type { Clock, Fault, Ids } from '../../../../kernel/plugin.js'
import type { PermissionMode } from '../../../agents/agents/api.js'
import type { ToolCallFields } from '../acp/schemas.js'
import type { AgentGuards } from '../agent/guard.js'
import type { EventContent } from '../events.js'
import type { PermissionAsked } from '../points.js'
import type { Territory } from './paths.js'
import type { PermissionOption } from './permission-rules.js'
import type { WholeQuestion } from './question.js'
import type { ToolRights } from './tool-rights.js'

/** What the `permission` gate says. */
export interface GateAnswer {
  /** The kind that the mode is to judge as well. */
  readonly judgedAs: string
  /** No person is to be asked: what the mode would leave to one is allowed. */
  readonly isAllowed: boolean
  readonly refusal?: Fault
}

/** What permissions need of their session. */
export interface PermissionContext {
  readonly mode: PermissionMode
  /** Default: all there are. */
  readonly tools?: ToolRights
  readonly guards?: Pick<AgentGuards, 'first' | 'required'>
  readonly territory: Territory
  readonly clock: Clock
  readonly ids: Ids
  /** Milliseconds that a request waits for a person; then it is rejected once. */
  readonly timeoutMs: number
  /** The turn that runs. */
  turnId(): string | undefined
  /** A person may answer while this turn runs: it is not one of a job or of a task. */
  isAttended(): boolean
  /** What earlier updates said about a tool call. */
  known(toolCallId: string): Partial<ToolCallFields> | undefined
  /** Asks the `permission` gate. */
  gate(wanted: Omit<PermissionAsked, 'sessionId' | 'judgeAs' | 'allow'>): Promise<GateAnswer>
  record(turnId: string, content: EventContent): void
  /** Writes a warning into the journal. */
  warn(turnId: string, content: EventContent): void
}

/** A request that waits for a person. */
export interface PendingPermission {
  readonly requestId: string
  readonly turnId: string
  /** All of it, as it came. */
  readonly question: WholeQuestion
  readonly createdAt: number
  /** Epoch milliseconds; default: the time that requests of agents have. */
  readonly expiresAt?: number
  readonly options: readonly PermissionOption[]
}
