import { isDeepStrictEqual } from 'node:util'
import { parse as parseToml } from 'smol-toml'
import * as v from 'valibot'
import { Document, isMap, isNode, parseDocument } from 'yaml'
import { headValues, parseHead, type SplitFile, splitFrontmatter } from '../../../../kernel/kit/frontmatter.js'
import { issueText } from '../../../../kernel/kit/issue-text.js'
import { messageOf } from '../../../../kernel/plugin.js'
import type { AgentDefinition } from '../api.js'
import { DefinitionError, definitionOf, digestOf, MAX_DEFINITION_BYTES, type Place } from './definition.js'
import { Frontmatter } from './frontmatter.js'

/** Parses the AGENT.md file of the folder `name`. Throws {@link DefinitionError}. */
export function parseDefinition(name: string, bytes: Uint8Array, place: Place): AgentDefinition {
  const { fields, prompt } = parseFile(bytes)
  if (fields.name !== name) {
    throw new DefinitionError(
      'name',
      `name: it says ${JSON.stringify(fields.name)}, but its folder is called ${JSON.stringify(name)}`,
    )
  }
  return definitionOf(fields, prompt, digestOf(bytes), place)
}

/** The head and the text of an AGENT.md file; the head also as it is written. Throws {@link DefinitionError}. */
export function parseFile(bytes: Uint8Array): { fields: Frontmatter; prompt: string; head: string } {
  if (bytes.length > MAX_DEFINITION_BYTES) throw tooLarge(bytes.length)
  const { head, body } = split(decode(bytes))
  const decoded = v.safeParse(Frontmatter, fieldsOf(head))
  if (decoded.success) return { fields: decoded.output, prompt: body.trim(), head }
  const issue = decoded.issues[0]
  throw new DefinitionError('field', `${v.getDotPath(issue) ?? 'frontmatter'}: ${describe(issue)}`)
}

/**
 * The text of an AGENT.md file with these fields. Of an old head in YAML, comments and order stay.
 * @param fields members that are undefined are left out
 */
export function renderDefinition(fields: Frontmatter, prompt: string, oldHead = ''): string {
  const old = parseDocument(oldHead, { version: '1.2' })
  const document = isMap(old.contents) && old.errors.length === 0 ? old : new Document({}, { version: '1.2' })
  const members: Record<string, unknown> = { ...fields }
  for (const name of Object.keys(Frontmatter.entries)) {
    const value = members[name]
    if (value === undefined) document.delete(name)
    else if (!isDeepStrictEqual(value, plainOf(document.get(name)))) document.set(name, value)
  }
  return `---\n${document.toString({ lineWidth: 0 })}---\n\n${prompt.trim()}\n`
}

const plainOf = (node: unknown): unknown => (isNode(node) ? node.toJSON() : node)

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

function split(text: string): SplitFile {
  const parts = splitFrontmatter(text)
  if (typeof parts !== 'string') return parts
  const what = parts === 'open' ? 'the frontmatter is not closed by a line ---' : 'it must start with a line ---'
  throw new DefinitionError('no_frontmatter', what)
}

/** YAML first, TOML where that gives no mapping. */
function fieldsOf(head: string): unknown {
  let noYaml: string
  try {
    return headValues(parseHead(head))
  } catch (error) {
    noYaml = messageOf(error)
  }
  try {
    return parseToml(head)
  } catch (error) {
    const looksToml = /^\s*[A-Za-z_]+\s*=/m.test(head)
    const why = looksToml ? `not valid TOML: ${firstLine(messageOf(error))}` : noYaml
    throw new DefinitionError('frontmatter', why)
  }
}

const firstLine = (text: string) => text.split('\n', 1)[0] ?? text

function describe(issue: v.BaseIssue<unknown>): string {
  return issue.type === 'strict_object' && issue.expected === 'never' ? 'unknown field' : issueText(issue)
}
