import type { PlanEntry, ToolCallContent, ToolCallLocation, ToolKind } from '@agentclientprotocol/sdk/unstable'
import { clip } from '../text.js'
import type { CommandResult } from '../workspace/command.js'
import type { Files } from '../workspace/files.js'
import { Refused } from '../workspace/places.js'

/** Arguments of a call, as the model wrote them. */
export type Input = Readonly<Record<string, unknown>>

/** What a tool may do while it runs. Each method ends with the reason of the signal when the turn is cancelled. */
export interface ToolContext {
  readonly files: Files
  readonly signal: AbortSignal
  /** Characters of a result that the model is given. */
  readonly maxOutput: number
  /** Shows more of the call: what it is about to change. */
  show(update: { readonly content?: ToolCallContent[]; readonly locations?: ToolCallLocation[] }): Promise<void>
  /** Throws {@link Refused} unless the mode or the person allows it. `subject` is what "always" is remembered for. */
  allowed(subject: string): Promise<void>
  plan(entries: PlanEntry[]): Promise<void>
  run(line: string, timeoutMs: number): Promise<CommandResult>
}

/** What a tool did, for the model; `failed` shows it as such without being an error. */
export interface ToolResult {
  readonly text: string
  readonly failed?: boolean
}

/** One tool that the model is offered. */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly kind: ToolKind
  /** JSON Schema of its arguments. */
  readonly parameters: Readonly<Record<string, unknown>>
  /** Words for a person, from arguments that were not judged yet. */
  title(input: Input): string
  /** Throws {@link Refused} with words for the model. */
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

/** A text of the arguments. Throws {@link Refused}. */
export function textIn(input: Input, name: string): string {
  const value = input[name]
  if (typeof value !== 'string') throw new Refused(`${name} has to be a text`)
  return value
}

export function optionalText(input: Input, name: string): string | undefined {
  return input[name] === undefined || input[name] === null ? undefined : textIn(input, name)
}

/** A whole number of the arguments, which some models write as a text. Throws {@link Refused}. */
export function optionalWhole(input: Input, name: string, max: number): number | undefined {
  const value = input[name]
  if (value === undefined || value === null) return undefined
  const number = Number(value)
  if (!Number.isInteger(number) || number < 1) throw new Refused(`${name} has to be a whole number from 1`)
  return Math.min(number, max)
}

/** For titles: a member that may be anything. */
export function shownMember(input: Input, name: string, max = 120): string {
  const value = input[name]
  const words = typeof value === 'string' ? value.replace(/\s+/g, ' ').trim() : ''
  return words.length > max ? `${clip(words, max)}…` : words || '…'
}
