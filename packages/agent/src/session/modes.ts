import type { SessionMode } from '@agentclientprotocol/sdk/unstable'

/** Approval policy of a session's tool calls. */
export type Mode = 'ask' | 'plan' | 'auto'

export const MODES: readonly (SessionMode & { readonly id: Mode })[] = [
  { id: 'ask', name: 'Ask', description: 'Reads freely; asks before it changes a file or runs a command' },
  { id: 'plan', name: 'Plan', description: 'Reads and proposes; changes nothing and runs nothing' },
  { id: 'auto', name: 'Auto', description: 'Changes files of the workspace and runs commands without asking' },
]

export const isMode = (value: unknown): value is Mode => MODES.some(({ id }) => id === value)
