/**
 * Lenient schemas for agent messages: real agents omit members, and one invalid member must not lose the whole message. IDs and
 * texts are bounded where they are stored.
 */

import * as v from 'valibot'
import { clip } from '../../../../kernel/kit/text.js'

const Text = v.fallback(v.optional(v.string()), undefined)
const Whole = v.fallback(v.optional(v.pipe(v.number(), v.integer(), v.minValue(0))), undefined)
/** Maximum number of agent settings kept, and of values per setting. */
const MAX_OPTIONS = 50
const MAX_CHOICES = 500
const list = <T>(item: v.GenericSchema<unknown, T>) =>
  v.pipe(
    v.fallback(v.optional(v.array(v.unknown())), undefined),
    v.transform(items => items?.flatMap(one => parsed(item, one))),
  )

function parsed<T>(schema: v.GenericSchema<unknown, T>, value: unknown): T[] {
  const result = v.safeParse(schema, value)
  return result.success ? [result.output] : []
}

export const InitializeResult = v.object({
  protocolVersion: v.fallback(v.number(), 1),
  agentCapabilities: v.fallback(
    v.optional(
      v.object({
        loadSession: v.fallback(v.optional(v.boolean()), false),
        mcpCapabilities: v.fallback(
          v.optional(v.object({ http: v.fallback(v.optional(v.boolean()), false) })),
          undefined,
        ),
        promptCapabilities: v.fallback(
          v.optional(
            v.object({
              image: v.fallback(v.optional(v.boolean()), false),
              audio: v.fallback(v.optional(v.boolean()), false),
              embeddedContext: v.fallback(v.optional(v.boolean()), false),
            }),
          ),
          undefined,
        ),
      }),
    ),
    undefined,
  ),
})

const Texts = v.object({ value: v.string(), name: Text, description: Text })
/** Values of a choice; grouped values are flattened into one list. */
const Choices = v.pipe(
  list(v.union([Texts, v.object({ options: list(Texts) })])),
  v.transform(found =>
    (found ?? [])
      .flatMap(one => ('value' in one ? [one] : (one.options ?? [])))
      .slice(0, MAX_CHOICES)
      .map(({ value, name, description }) => ({
        value: clip(value, 200),
        ...(name !== undefined && { label: clip(name, 200) }),
        ...(description !== undefined && { description: clip(description, 500) }),
      })),
  ),
)

/** A setting offered by an agent; settings of an unknown kind are left out. */
const Option = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.maxLength(200)),
    name: v.fallback(v.string(), ''),
    description: Text,
    category: Text,
    type: v.picklist(['select', 'boolean']),
    currentValue: v.fallback(v.optional(v.union([v.string(), v.boolean()])), undefined),
    options: Choices,
  }),
  v.transform(({ id, name, description, category, type, currentValue, options }) => ({
    id,
    label: clip(name, 200),
    description: description && clip(description, 500),
    category,
    kind: type,
    current: currentValue,
    values: options ?? [],
  })),
)
export type AgentOption = v.InferOutput<typeof Option>

export const ConfigOptions = v.object({
  configOptions: v.pipe(
    list(Option),
    v.transform(options => options?.slice(0, MAX_OPTIONS)),
  ),
})

const Models = v.pipe(
  v.object({
    currentModelId: Text,
    availableModels: list(v.object({ modelId: v.pipe(v.string(), v.maxLength(200)), name: Text })),
  }),
  v.transform(({ currentModelId, availableModels }) => ({
    current: currentModelId,
    available: (availableModels ?? []).slice(0, MAX_CHOICES).map(({ modelId, name }) => ({ id: modelId, name })),
  })),
)
export type ModelList = v.InferOutput<typeof Models>

export const SessionResult = v.object({
  ...ConfigOptions.entries,
  models: v.fallback(v.optional(Models), undefined),
  sessionId: Text,
  modes: v.fallback(
    v.nullish(v.object({ currentModeId: Text, availableModes: list(v.object({ id: v.string(), name: Text })) })),
    undefined,
  ),
})

export const PromptResult = v.object({ stopReason: v.fallback(v.string(), 'end_turn') })

export const ToolCallFields = v.object({
  toolCallId: v.pipe(v.string(), v.minLength(1), v.maxLength(1024)),
  title: Text,
  name: Text,
  kind: Text,
  status: Text,
  content: list(v.record(v.string(), v.unknown())),
  locations: list(v.object({ path: v.string(), line: Whole })),
  rawInput: v.optional(v.unknown()),
  rawOutput: v.optional(v.unknown()),
})
export type ToolCallFields = v.InferOutput<typeof ToolCallFields>

export const UpdateParams = v.object({
  sessionId: Text,
  update: v.looseObject({ sessionUpdate: v.string() }),
})
export type SessionUpdate = v.InferOutput<typeof UpdateParams>['update']

export const PermissionParams = v.object({
  toolCall: v.fallback(v.optional(ToolCallFields), undefined),
  options: list(v.object({ optionId: v.string(), name: v.fallback(v.string(), ''), kind: v.string() })),
})
export type PermissionParams = v.InferOutput<typeof PermissionParams>

export const ReadFileParams = v.object({ path: v.string(), line: v.nullish(Whole), limit: v.nullish(Whole) })
export const WriteFileParams = v.object({ path: v.string(), content: v.string() })
export const TerminalParams = v.object({ terminalId: v.string() })
export const CreateTerminalParams = v.object({
  command: v.pipe(v.string(), v.minLength(1)),
  args: v.nullish(v.array(v.string())),
  env: v.nullish(v.array(v.object({ name: v.string(), value: v.string() }))),
  cwd: v.nullish(v.string()),
  outputByteLimit: v.nullish(Whole),
})
export type CreateTerminalParams = v.InferOutput<typeof CreateTerminalParams>

export const AvailableCommands = v.object({
  availableCommands: list(
    v.object({
      name: v.string(),
      description: v.fallback(v.string(), ''),
      input: v.fallback(v.nullish(v.object({ hint: v.fallback(v.string(), '') })), undefined),
    }),
  ),
})
