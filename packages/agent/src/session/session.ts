import type { ModelMessage } from 'ai'
import type { McpServers } from '../tools/mcp.js'
import type { ReadFiles } from '../workspace/files.js'
import type { Mode } from './modes.js'
import type { Transcript } from './transcript-store.js'

/** A conversation that is open in this process. */
export interface Session {
  readonly id: string
  readonly cwd: string
  /** Canonical folders; the first is the workspace. */
  readonly roots: readonly string[]
  mode: Mode
  /** Chosen for this conversation; undefined: the model of the environment. */
  model: string | undefined
  turns: number
  /** The endpoint refused images for this model. */
  blind: boolean
  messages: ModelMessage[]
  /** Tokens of the last request and its answer, as reported by the endpoint. */
  counted: number
  readonly read: ReadFiles
  /** The person's "always" answers, by subject; kept in memory only. */
  readonly decisions: Map<string, 'allowed' | 'rejected'>
  readonly mcp: McpServers
  /** Cancels the running turn. */
  running: AbortController | undefined
}

export const transcriptOf = ({ id, cwd, mode, model, turns, messages }: Session): Transcript => ({
  id,
  cwd,
  mode,
  model,
  turns,
  messages,
})
