import type { PlanEntry, ToolCallContent, ToolCallLocation, ToolKind } from '@agentclientprotocol/sdk/unstable'
import { clip } from '../text.js'
import type { CommandResult } from '../workspace/command.js'
import type { Files } from '../workspace/files.js'
import { Refused } from '../workspace/paths.js'

/** Arguments of a call, as the model wrote them. */
export type Input = Readonly<Record<string, unknown>>

/** Operations available to a running tool. Each rejects with the signal's reason when the turn is cancelled. */
export interface ToolContext {
  readonly files: Files
  readonly signal: AbortSignal
  /** Characters of a result that the model receives. */
  readonly maxOutput: number
  /** Updates the call at the client, such as with the pending change. */
  show(update: { readonly content?: ToolCallContent[]; readonly locations?: ToolCallLocation[] }): Promise<void>
  /**
   * `subject` is the key under which an "always" answer is remembered.
   * @throws {Refused} Unless the mode or the person allows it.
   */
  allowed(subject: string): Promise<void>
  plan(entries: PlanEntry[]): Promise<void>
  run(line: string, timeoutMs: number): Promise<CommandResult>
}

/** The result of a tool, for the model; `failed` marks a failure that is not an error of the tool. */
export interface ToolResult {
  readonly text: string
  readonly failed?: boolean
}

/** A tool offered to the model. */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly kind: ToolKind
  /** JSON Schema of its arguments. */
  readonly parameters: Readonly<Record<string, unknown>>
  /** Title for a person, from arguments that are not validated yet. */
  title(input: Input): string
  /** @throws {Refused} With a message for the model. */
  run(input: Input, context: ToolContext): Promise<ToolResult>
}

export const text = (description: string) => ({ type: 'string', description })
export const whole = (description: string) => ({ type: 'integer', minimum: 1, description })
export const flag = (description: string) => ({ type: 'boolean', description })
export const object = (properties: Readonly<Record<string, object>>, required: readonly string[]) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

/**
 * A string argument.
 * @throws {Refused}
 */
export function textIn(input: Input, name: string): string {
  const value = input[name]
  if (typeof value !== 'string') throw new Refused(`${name} has to be a text`)
  return value
}

export function optionalText(input: Input, name: string): string | undefined {
  return input[name] === undefined || input[name] === null ? undefined : textIn(input, name)
}

/**
 * A whole-number argument, which some models send as a string.
 * @throws {Refused}
 */
export function optionalWhole(input: Input, name: string, max: number): number | undefined {
  const value = input[name]
  if (value === undefined || value === null) return undefined
  const number = Number(value)
  if (!Number.isInteger(number) || number < 1) throw new Refused(`${name} has to be a whole number from 1`)
  return Math.min(number, max)
}

/** A member of unvalidated arguments, shortened for a title. */
export function shownMember(input: Input, name: string, max = 120): string {
  const value = input[name]
  const words = typeof value === 'string' ? value.replace(/\s+/g, ' ').trim() : ''
  return words.length > max ? `${clip(words, max)}…` : words || '…'
}
