import type { SessionLog } from '../journal/session-log.js'
import type { SessionRow } from '../table.js'
import type { Turn } from '../turn/turn.js'
import type { AgentFailure } from './failure.js'

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
