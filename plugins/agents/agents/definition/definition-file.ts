import { isDeepStrictEqual } from 'node:util'
import { parse as parseToml, TomlError } from 'smol-toml'
import * as v from 'valibot'
import { Document, isMap, isNode, parseDocument } from 'yaml'
import {
  FrontmatterError,
  type HeadField,
  headValues,
  type Position,
  parseHead,
  type SplitFile,
  splitFrontmatter,
} from '../../../../kernel/kit/frontmatter.js'
import { issueText } from '../../../../kernel/kit/issue-text.js'
import { messageOf } from '../../../../kernel/plugin.js'
import type { AgentDefinition } from '../api.js'
import { DefinitionError, type DefinitionLocation, definitionOf, digestOf, MAX_DEFINITION_BYTES } from './definition.js'
import { Frontmatter } from './frontmatter.js'

/** Parses the AGENT.md file of the folder `name`. Throws {@link DefinitionError}. */
export function parseDefinition(name: string, bytes: Uint8Array, location: DefinitionLocation): AgentDefinition {
  const { fields, prompt, leftOut } = parseFile(bytes)
  if (fields.name !== name) {
    throw new DefinitionError(
      'name',
      `name: ${JSON.stringify(fields.name)} differs from the name of the folder, ${JSON.stringify(name)}`,
    )
  }
  const definition = definitionOf(fields, prompt, digestOf(bytes), location)
  return leftOut.length > 0 ? { ...definition, leftOut } : definition
}

/**
 * Lists whose items are checked one by one. Denied tools are excluded: leaving one out would give the agent more
 * rights.
 */
const ENTRIES = ['tools', 'toolsets', 'mcp_servers', 'hooks'] as const

/** A parsed AGENT.md file. */
interface ParsedFile {
  readonly fields: Frontmatter
  readonly prompt: string
  /** The frontmatter, as written in the file. */
  readonly head: string
  /** Invalid items of {@link ENTRIES}. */
  readonly leftOut: readonly string[]
}

/**
 * Parses the frontmatter and text of an AGENT.md file. An invalid list item is left out. Throws {@link
 * DefinitionError}.
 */
export function parseFile(bytes: Uint8Array): ParsedFile {
  if (bytes.length > MAX_DEFINITION_BYTES) throw tooLarge(bytes.length)
  const { head, body } = split(decode(bytes))
  const { values, placed } = fieldsOf(head)
  const prompt = body.trim()
  const decoded = v.safeParse(Frontmatter, values)
  if (decoded.success) return { fields: decoded.output, prompt, head, leftOut: [] }
  /** Indexes of left-out items, by list. */
  const bad = new Map<string, Set<number>>()
  const leftOut: string[] = []
  for (const issue of decoded.issues) {
    const path = (issue.path ?? []).map(({ key }) => key as string | number)
    const what = placed(path, `${v.getDotPath(issue) ?? 'frontmatter'}: ${describe(issue)}`)
    const [named, index] = path
    const list = ENTRIES.find(name => name === named)
    const isEntry = list !== undefined && typeof index === 'number'
    // A required item guards something or is essential, so it must not be left out.
    const item = isEntry ? (values[list] as readonly unknown[])[index] : undefined
    if (!isEntry || Object(item).required === true) throw new DefinitionError('field', what)
    const known = bad.get(list) ?? new Set()
    if (!known.has(index)) leftOut.push(what)
    bad.set(list, known.add(index))
  }
  const good = (list: string) => (values[list] as readonly unknown[]).filter((_, at) => !bad.get(list)?.has(at))
  const kept = Object.fromEntries([...bad.keys()].map(list => [list, good(list)]))
  // An empty list of tools would allow all tools, so the definition is invalid.
  const isOpen = ['tools', 'toolsets'].some(list => kept[list]?.length === 0)
  if (isOpen) throw new DefinitionError('field', leftOut.join('; '))
  return { fields: v.parse(Frontmatter, { ...values, ...kept }), prompt, head, leftOut }
}

/**
 * Renders an AGENT.md file. Comments and order of an old YAML frontmatter are kept.
 * @param fields undefined members are left out
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

/** The error of a file with too many bytes. */
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

/** Fields of a frontmatter, and a function that adds the place of a field to a text. */
interface Fields {
  readonly values: Readonly<Record<string, unknown>>
  readonly placed: (path: readonly (string | number)[], what: string) => string
}

/** Parses YAML, or TOML if the text is not a YAML mapping. */
function fieldsOf(head: string): Fields {
  let noYaml: string
  try {
    const fields = parseHead(head)
    const placed: Fields['placed'] = ([name, ...below], what) => {
      const field = fields.get(String(name))
      return field ? at(nearest(field, below), what) : what
    }
    return { values: said(headValues(fields)), placed }
  } catch (error) {
    noYaml = error instanceof FrontmatterError ? at(error.position, error.message) : messageOf(error)
  }
  try {
    return { values: parseToml(head), placed: (_path, what) => what }
  } catch (error) {
    const looksToml = /^\s*[A-Za-z_]+\s*=/m.test(head)
    const line = error instanceof TomlError ? at({ line: error.line + 1, column: error.column }, '') : ''
    const why = looksToml ? `${line}not valid TOML: ${firstLine(messageOf(error))}` : noYaml
    throw new DefinitionError('frontmatter', why)
  }
}

/** Position of a value, or of its nearest existing parent. */
function nearest(field: HeadField, path: readonly (string | number)[]): Position {
  const found = field.positionOf(path)
  const { line, column } = field.position
  const isField = found.line === line && found.column === column
  return isField && path.length > 1 ? nearest(field, path.slice(0, -1)) : found
}

const at = ({ line, column }: Position, what: string) => `line ${line}, column ${column}: ${what}`

/** Removes null members, which count as unset, and converts numbers in words and variables of MCP servers to text. */
function said(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const all = Object.entries(values).filter(([, value]) => value !== null)
  return Object.fromEntries(all.map(([name, value]) => [name, name === 'mcp_servers' ? listOf(value) : value]))
}

const listOf = (servers: unknown) => (Array.isArray(servers) ? servers.map(serverOf) : servers)

function serverOf(server: unknown): unknown {
  if (typeof server !== 'object' || server === null || Array.isArray(server)) return server
  const members = Object.entries(server).filter(([, value]) => value !== null)
  return Object.fromEntries(members.map(([name, value]) => [name, asTexts(name, value)]))
}

function asTexts(name: string, value: unknown): unknown {
  if (name === 'args' && Array.isArray(value)) return value.map(textOf)
  if (name !== 'env' || typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const variables = Object.entries(value).filter(([, one]) => one !== null)
  return Object.fromEntries(variables.map(([key, one]) => [key, textOf(one)]))
}

const textOf = (value: unknown) => (typeof value === 'number' || typeof value === 'boolean' ? String(value) : value)

const firstLine = (text: string) => text.split('\n', 1)[0] ?? text

function describe(issue: v.BaseIssue<unknown>): string {
  return issue.type === 'strict_object' && issue.expected === 'never' ? 'unknown field' : issueText(issue)
}
