import { createHash } from 'node:crypto'
import { parse as parseToml } from 'smol-toml'
import * as v from 'valibot'
import { parseDocument } from 'yaml'
import { issueText, messageOf } from '../../kernel/plugin.js'
import type { AgentDefinition } from './api.js'
import { splitCommand } from './command.js'
import { Frontmatter, RESERVED_NAMES } from './frontmatter.js'

/** Bytes of a definition file (Behaviour 2.5). */
export const MAX_DEFINITION_BYTES = 512 * 1024

/** What is wrong with a definition file. */
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
      | 'prompt',
    message: string,
  ) {
    super(message)
  }
}

/** Where a definition was found. */
export type Place = Pick<AgentDefinition, 'origin' | 'source' | 'path' | 'workspaceId'>

/** `sha256:` and hex over the bytes of a definition. */
export const digestOf = (bytes: Uint8Array | string) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** Parses an AGENT.md file (Behaviour 4.1) of the folder `name`. Throws {@link DefinitionError}. */
export function parseDefinition(name: string, bytes: Uint8Array, place: Place): AgentDefinition {
  if (bytes.length > MAX_DEFINITION_BYTES) throw tooLarge(bytes.length)
  const { head, body } = split(decode(bytes))
  const decoded = v.safeParse(Frontmatter, parseHead(head))
  if (!decoded.success) {
    const issue = decoded.issues[0]
    throw new DefinitionError('field', `${v.getDotPath(issue) ?? 'frontmatter'}: ${describe(issue)}`)
  }
  const fields = decoded.output
  if (fields.name !== name) {
    throw new DefinitionError(
      'name',
      `name: it says ${JSON.stringify(fields.name)}, but its folder is called ${JSON.stringify(name)}`,
    )
  }
  if (RESERVED_NAMES.has(name))
    throw new DefinitionError('name', `name: ${name} is reserved for an agent of the daemon itself`)
  const words = fields.command === undefined ? [] : splitCommand(fields.command)
  if ('wrong' in words) throw new DefinitionError('field', words.wrong)
  const prompt = body.trim()
  if (prompt === '')
    throw new DefinitionError('prompt', 'the text after the frontmatter is the prompt, and it is empty')
  const { command, provider, model, reasoning_effort: reasoningEffort, permissions } = fields
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
    hooks: (fields.hooks ?? []).map(hook => hook.name),
    digest: digestOf(bytes),
    ...place,
  }
}

/** The error of a file of `bytes` bytes that is too large. */
export const tooLarge = (bytes: number | bigint) =>
  new DefinitionError('too_large', `it has ${bytes} bytes, at most ${MAX_DEFINITION_BYTES} are read`)

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replaceAll('\r\n', '\n')
  } catch {
    throw new DefinitionError('unreadable', 'it is not valid UTF-8')
  }
}

function split(text: string): { head: string; body: string } {
  const match = /^---[ \t]*\n(?:([\s\S]*?)\n)?---[ \t]*(?:\n|$)/.exec(text)
  if (match) return { head: match[1] ?? '', body: text.slice(match[0].length) }
  const what = text.startsWith('---') ? 'the frontmatter is not closed by a line ---' : 'it must start with a line ---'
  throw new DefinitionError('no_frontmatter', what)
}

/** YAML first, TOML where that gives no mapping. */
function parseHead(head: string): unknown {
  let yamlError = 'it is no mapping of names to values'
  try {
    const document = parseDocument(head, { prettyErrors: false, uniqueKeys: true, version: '1.2' })
    const [error] = document.errors
    if (error) yamlError = error.message
    else {
      // Without a bound, aliases of aliases grow without one.
      const value: unknown = document.toJS({ maxAliasCount: 100 })
      if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value
    }
  } catch (error) {
    yamlError = messageOf(error)
  }
  try {
    return parseToml(head)
  } catch (error) {
    const looksToml = /^\s*[A-Za-z_]+\s*=/m.test(head)
    const why = looksToml ? `not valid TOML: ${firstLine(messageOf(error))}` : `not valid YAML: ${firstLine(yamlError)}`
    throw new DefinitionError('frontmatter', why)
  }
}

const firstLine = (text: string) => text.split('\n', 1)[0] ?? text

function describe(issue: v.BaseIssue<unknown>): string {
  return issue.type === 'strict_object' && issue.expected === 'never' ? 'unknown field' : issueText(issue)
}

/** Only the members that have a value. */
function defined<T extends Record<string, unknown>>(members: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
}
