import type { Clock, Redact } from '../../../../kernel/plugin.js'
import type { PermissionMode } from '../../../agents/agents/api.js'
import type { ProcessHandle } from '../../../platform/processes/api.js'
import type { ClientMethods } from '../requests/client-methods.js'
import type { SessionLimits } from '../settings.js'
import type { AgentGuards } from './guard.js'

/** Settings that limit the start requests to an agent, in milliseconds. */
export type StartBound = 'initializeTimeout' | 'newSessionTimeout'

/** Reason for which an agent runs without MCP servers. */
export type LeftOut = { readonly transport: 'stdio' | 'http' } | { readonly refusal: string }

/** Parameters of a process that has been spawned. */
export interface AgentStart extends Pick<SessionLimits, StartBound> {
  /** Owner of the process, for people. */
  readonly owner: string
  readonly handle: ProcessHandle
  readonly clock: Clock
  readonly cwd: string
  readonly addDirs: readonly string[]
  readonly mcpServers: readonly unknown[]
  readonly mode: PermissionMode
  /** Additional IDs of modes in which the agent asks, besides the common ones. */
  readonly askingModes: readonly string[]
  /** Client capabilities that are not offered to the agent. */
  readonly withholds: readonly string[]
  /** MCP transports that the agent supports, where it advertises more than that. */
  readonly mcpTransports: readonly string[] | undefined
  /** An agent that offers no asking mode is not started under a guard. */
  readonly guards: Pick<AgentGuards, 'first'>
  readonly version: string
  /** Agent-assigned ID of the earlier session that is to be loaded. */
  readonly load: string | undefined
  /** The methods that the agent may call. */
  readonly methods: ClientMethods
  /** Receives the parameters of each `session/update`, in order; not called while an old session is replayed. */
  update(params: unknown): void
  room(): Promise<void>
  activity(): void
  /** The agent violated the protocol or flooded the connection. */
  fault(error: Error): void
  /** Names of MCP servers that the agent runs without, and the reason. */
  leftOut(servers: readonly string[], why: LeftOut): void
  /** A request was refused because too many are in progress. */
  refused(why: string): void
  log(text: string, fields: Readonly<Record<string, unknown>>): void
  readonly redact: Redact
  /** Instructions for the login, for an agent that needs one; undefined where they are unknown. */
  readonly login: string | undefined
  /** The names of secrets withheld from the agent, for a person whose login fails. */
  readonly withheld: () => string | undefined
}
