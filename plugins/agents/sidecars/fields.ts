import type { Position } from '../../../kernel/kit/frontmatter.js'
import { clip } from '../../../kernel/kit/text.js'
import { bodyFields, type Findings, type SidecarDocument } from './document.js'

/** Fields owned by an agent's definition, the scheduler or the configuration; a sidecar cannot set them. */
const OWNED_ELSEWHERE = [
  'name',
  'provider',
  'command',
  'model',
  'reasoning_effort',
  'tools',
  'toolsets',
  'deny_tools',
  'permissions',
  'mcp_servers',
  'hooks',
  'capabilities',
  'tasks',
  'task_runs',
  'scheduler',
  'schedule',
  'lease',
  'claim',
  'claim_token',
  'network',
  'channels',
  'spawn',
  'sandbox',
  'env',
  'secret_env',
  'config',
] as const

export const SOUL_FORBIDDEN: ReadonlySet<string> = new Set([...OWNED_ELSEWHERE, 'heartbeat'])
export const HEARTBEAT_FORBIDDEN: ReadonlySet<string> = new Set([...OWNED_ELSEWHERE, 'soul'])

/** Types of frontmatter fields. */
export type FieldType = 'integer' | 'boolean' | 'text' | 'texts' | 'mapping' | 'mappings'

const MAX_TEXT = 4096
const MAX_ITEMS = 64
const isText = (value: unknown) => typeof value === 'string' && value.trim() !== '' && value.length <= MAX_TEXT
const isMapping = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
const isList = (value: unknown, item: (one: unknown) => boolean) =>
  Array.isArray(value) && value.length <= MAX_ITEMS && value.every(item)

const TYPES: Readonly<Record<FieldType, { readonly is: (value: unknown) => boolean; readonly words: string }>> = {
  integer: { is: Number.isSafeInteger, words: 'a whole number' },
  boolean: { is: value => typeof value === 'boolean', words: 'true or false' },
  text: { is: isText, words: `a text of at most ${MAX_TEXT} characters` },
  texts: { is: value => isList(value, isText), words: `a list of at most ${MAX_ITEMS} texts` },
  mapping: { is: isMapping, words: 'a mapping of names to values' },
  mappings: { is: value => isList(value, isMapping), words: `a list of at most ${MAX_ITEMS} mappings` },
}

/** The known fields with valid types; all others are reported. */
export function checkedFields<K extends string>(
  entries: Iterable<readonly [string, unknown]>,
  types: Readonly<Record<K, FieldType>>,
  forbidden: ReadonlySet<string>,
  findings: Findings,
  where: { readonly prefix: string; readonly position: (name: string) => Position },
): { [N in K]?: unknown } {
  const found: { [N in K]?: unknown } = {}
  for (const [name, value] of entries) {
    const field = clip(`${where.prefix}${name}`, 200)
    const about = { field, position: where.position(name) }
    const type = Object.hasOwn(types, name) ? types[name as K] : undefined
    if (type !== undefined) {
      if (TYPES[type].is(value)) found[name as K] = value
      else findings.add('invalid_field_type', `${field} is ${TYPES[type].words}`, about)
    } else if (forbidden.has(name)) {
      findings.add('forbidden_field', `${field} can be set only in AGENT.md or in the configuration`, about)
    } else findings.add('unknown_field', `${field} is not known; choose ${Object.keys(types).join(', ')}`, about)
  }
  return found
}

/** The fields of a frontmatter. */
export function headFields<K extends string>(
  { fields, problem }: SidecarDocument,
  types: Readonly<Record<K, FieldType>>,
  forbidden: ReadonlySet<string>,
  findings: Findings,
): { [N in K]?: unknown } {
  if (problem) findings.add('frontmatter_invalid', problem.message, { position: problem.position })
  const entries = [...fields].map(([name, { value }]) => [name, value] as const)
  const position = (name: string) => fields.get(name)?.position ?? { line: 1, column: 1 }
  return checkedFields(entries, types, forbidden, findings, { prefix: '', position })
}

/** Reports sections and `name:` lines of a body that look like a forbidden field. */
export function checkBody(
  document: SidecarDocument,
  maxBytes: number,
  code: 'forbidden_section' | 'reserved_body_field',
  forbidden: ReadonlySet<string>,
  findings: Findings,
): void {
  const size = Buffer.byteLength(document.body)
  const position = { line: document.bodyLine, column: 1 }
  if (size > maxBytes)
    findings.add('oversized_body', `the text has ${size} bytes, at most ${maxBytes} are read`, { position })
  for (const { name, section, line } of bodyFields(document)) {
    if (!forbidden.has(name) || (code === 'forbidden_section' && section === undefined)) continue
    const what = section === undefined ? `the line ${name}:` : `a section ${section}`
    findings.add(code, `${what} does not belong in this file; put it into AGENT.md or the configuration`, {
      field: name,
      position: { line, column: 1 },
      ...(section === undefined ? {} : { section }),
    })
  }
}

/**
 * The start of a text within a number of UTF-8 bytes, without splitting a character.
 * @param mark appended to a cut text, within the limit if there is room
 */
export function cutText(
  text: string,
  maxBytes: number,
  mark = '',
): { readonly text: string; readonly truncated: boolean } {
  const bytes = Buffer.from(text)
  if (bytes.length <= maxBytes) return { text, truncated: false }
  const end = mark.length < maxBytes ? mark : ''
  let length = maxBytes - Buffer.byteLength(end)
  while (length > 0 && ((bytes[length] as number) & 0xc0) === 0x80) length--
  return { text: `${bytes.subarray(0, length)}${end}`, truncated: true }
}
