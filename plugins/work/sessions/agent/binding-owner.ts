import type { SessionLog } from '../journal/session-log.js'
import type { SessionRow } from '../table.js'
import type { Turn } from '../turn/turn.js'
import type { AgentFailure } from './failure.js'

/** The session as its agent binding sees it. */
export interface BindingOwner {
  readonly id: string
  readonly log: SessionLog
  readonly row: SessionRow
  readonly turn: Turn | undefined
  /** Aborts when a stop of the session begins. */
  readonly signal: AbortSignal
  /** The journal reached its size limit: agent output is no longer stored. */
  readonly isFull: boolean
  /** A tool call of the running turn has its result. */
  toolEnded(): void
  /** The process exited by itself between turns. */
  agentEnded(failure: AgentFailure, code: number | null): void
}
