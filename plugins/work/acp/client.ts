import type { AgentProcess, AgentStart } from './process/agent-process.js'
import type { ClarificationContext, Clarifications } from './requests/clarifications.js'
import type { CallWatch } from './requests/content.js'
import type { AgentGuards } from './requests/guards.js'
import type { Territory } from './requests/paths.js'
import type { PermissionContext } from './requests/permission-context.js'
import type { Permissions } from './requests/permissions.js'
import type { Terminals, TerminalsContext } from './requests/terminals.js'

/** A session as the client of its agent sees it. */
export interface ClientContext
  extends Omit<PermissionContext, 'clock' | 'ids' | 'timeoutMs' | 'tools' | 'territory'>,
    Pick<ClarificationContext, 'sessionId' | 'agentName'>,
    Pick<TerminalsContext, 'env' | 'spawn'> {
  readonly guards: AgentGuards
  /** The folders of the session; they may change with the next process. */
  territory(): Territory
  /** IDs of the granted tools; undefined: all. */
  readonly tools: readonly string[] | undefined
  /** Writes a question of the agent, or the end of one, into the journal. */
  note: ClarificationContext['record']
  /** The hooks on file and terminal methods. */
  readonly watch: CallWatch
}

/** A process of an agent that was started, and its callbacks. */
export type StartedAgent = Omit<
  AgentStart,
  'clock' | 'redact' | 'guards' | 'version' | 'initializeTimeout' | 'newSessionTimeout' | 'methods' | 'refused'
>

/** The client of an agent: it answers the requests of the agent, and its state outlives one connection. */
export interface AgentClient {
  readonly permissions: Permissions
  readonly clarifications: Clarifications
  readonly terminals: Terminals
  /** Performs the handshake with a started process. @throws AgentFailure after the process was stopped */
  connect(agent: StartedAgent): Promise<AgentProcess>
}
