import { createHash } from 'node:crypto'
import type { AgentDefinition } from '../api.js'
import { splitCommand } from './command.js'
import { type Frontmatter, RESERVED_NAMES } from './frontmatter.js'

/** Largest definition file, in bytes. */
export const MAX_DEFINITION_BYTES = 512 * 1024

/** Problem of a definition file. */
export class DefinitionError extends Error {
  override readonly name = 'DefinitionError'

  constructor(
    readonly kind:
      | 'unreadable'
      | 'too_large'
      | 'outside_root'
      | 'no_frontmatter'
      | 'frontmatter'
      | 'field'
      | 'name'
      | 'prompt'
      | 'too_many'
      | 'changed',
    message: string,
  ) {
    super(message)
  }
}

/** The place of a definition. */
export type DefinitionLocation = Pick<
  AgentDefinition,
  'origin' | 'source' | 'path' | 'workspaceId' | 'record' | 'extension'
>

/** `sha256:` and hex over the bytes of a definition. */
export const digestOf = (bytes: Uint8Array | string) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** Builds a definition from valid fields and checks what their schema cannot. Throws {@link DefinitionError}. */
export function definitionOf(
  fields: Frontmatter,
  prompt: string,
  digest: string,
  location: DefinitionLocation,
): AgentDefinition {
  const { name, command, provider, model, reasoning_effort: reasoningEffort, permissions } = fields
  if (RESERVED_NAMES.has(name)) throw new DefinitionError('name', `name: ${name} is reserved for the daemon`)
  const words = command === undefined ? [] : splitCommand(command)
  if ('wrong' in words) throw new DefinitionError('field', words.wrong)
  if (prompt === '')
    throw new DefinitionError('prompt', 'the text after the frontmatter is the prompt, and it is empty')
  return {
    name,
    prompt,
    ...defined({ command, provider, model, reasoningEffort, permissions }),
    tools: fields.tools ?? [],
    toolsets: fields.toolsets ?? [],
    denyTools: fields.deny_tools ?? [],
    categoryPath: fields.category_path ?? [],
    disabledSkills: fields.skills?.disabled ?? [],
    mcpServers: fields.mcp_servers ?? [],
    hooks: fields.hooks ?? [],
    digest,
    ...location,
  }
}

/** Removes undefined members. */
function defined<T extends Record<string, unknown>>(members: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
}
