import type { Clock, Redact } from '../../../../kernel/plugin.js'
import type { PermissionMode } from '../../../agents/agents/api.js'
import type { ProcessHandle } from '../../../platform/processes/api.js'
import type { ClientMethods } from '../requests/client-methods.js'
import type { SessionLimits } from '../settings.js'
import type { AgentGuards } from './guard.js'

/** Settings that bound a request to an agent that starts, in milliseconds. */
export type StartBound = 'initializeTimeout' | 'newSessionTimeout'

/** Why an agent does without MCP servers. */
export type LeftOut = { readonly transport: 'stdio' | 'http' } | { readonly refusal: string }

/** What a process is started with, once it is spawned. */
export interface AgentStart extends Pick<SessionLimits, StartBound> {
  /** Whose process it is, for people. */
  readonly owner: string
  readonly handle: ProcessHandle
  readonly clock: Clock
  readonly cwd: string
  readonly addDirs: readonly string[]
  readonly mcpServers: readonly unknown[]
  readonly mode: PermissionMode
  /** Ids of modes in which the agent asks, beside those that agents mostly have. */
  readonly askingModes: readonly string[]
  /** Capabilities of a client that the agent is not offered. */
  readonly withholds: readonly string[]
  /** How it reaches MCP servers, as far as that is less than it says. */
  readonly mcpTransports: readonly string[] | undefined
  /** An agent that offers no mode in which it asks is not started under a guard. */
  readonly guards: Pick<AgentGuards, 'first'>
  readonly version: string
  /** Id that the agent gave an earlier session of which this is the continuation. */
  readonly load: string | undefined
  /** The methods that the agent may call. */
  readonly methods: ClientMethods
  /** Parameters of a `session/update`, in order; not called while an old session is replayed. */
  update(params: unknown): void
  room(): Promise<void>
  activity(): void
  /** The agent broke the protocol, or flooded it. */
  fault(error: Error): void
  /** MCP servers, by name, that the agent does without: it has no way to reach them, or says why it takes none. */
  leftOut(servers: readonly string[], why: LeftOut): void
  /** A request was refused unseen. */
  refused(why: string): void
  log(text: string, fields: Readonly<Record<string, unknown>>): void
  readonly redact: Redact
  /** How one logs in, for an agent that wants it; undefined where nobody knows. */
  readonly login: string | undefined
  /** The names of secrets withheld from the agent, for a person whose login fails. */
  readonly withheld: () => string | undefined
}
