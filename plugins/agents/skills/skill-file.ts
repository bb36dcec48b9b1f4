import * as v from 'valibot'
import {
  FrontmatterError,
  type HeadField,
  headValues,
  type Position,
  parseHead,
  splitFrontmatter,
} from '../../../kernel/kit/frontmatter.js'
import { issueLine } from '../../../kernel/kit/issue-text.js'
import { cut } from '../../../kernel/kit/text.js'
import { MAX_DESCRIPTION, SkillSchema, type SkillSpec } from './skill-kind.js'

export const SKILL_FILE = 'SKILL.md'
/** Largest SKILL.md, in bytes. */
export const MAX_SKILL_BYTES = 512 * 1024

/** Frontmatter members that are used here or by other programs. */
const KNOWN = new Set([
  ...['name', 'description', 'version', 'metadata', 'license', 'compatibility', 'allowed-tools'],
  ...['disable-model-invocation', 'user-invocable', 'argument-hint', 'enabled'],
])

/** A parsed SKILL.md. */
export interface SkillFile {
  readonly spec: SkillSpec
  /** Frontmatter members that have no meaning here. */
  readonly unknown: readonly string[]
  /** Remarks about values that were corrected. */
  readonly remarks: readonly string[]
}

/** Name of the SKILL.md in a folder: some programs write it in another case. */
export const skillFileIn = (names: readonly string[]): string | undefined =>
  names.includes(SKILL_FILE) ? SKILL_FILE : names.find(name => name.toLowerCase() === 'skill.md')

/**
 * Parses a SKILL.md. Files of other programs are accepted: without a name, description or frontmatter, with null
 * members, and with colons and markup in plain values. Throws an Error with the problem, line and column.
 * @param folder name of a skill without an own one
 */
export function parseSkillFile(text: string, folder?: string): SkillFile {
  const lines = text.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n')
  const split = splitFrontmatter(lines.trimStart())
  if (split === 'open') throw new Error('line 1: the frontmatter is not closed by a second line ---')
  const { head, body } = split === 'none' ? { head: '', body: lines } : split
  const blank = lines.slice(0, lines.length - lines.trimStart().length).split('\n').length - 1
  const placed = ({ line, column }: Position, what: string) =>
    new Error(`line ${line + blank}, column ${column}: ${what}`)
  const { fields, remarks } = headOf(head, placed)
  const written = Object.fromEntries(Object.entries(headValues(fields)).filter(([, value]) => value !== null))
  const description = textOf(written.description) ?? firstParagraph(body)
  if (typeof description === 'string' && description.length > MAX_DESCRIPTION)
    remarks.push(`its description is truncated after ${MAX_DESCRIPTION} characters`)
  const decoded = v.safeParse(SkillSchema, {
    name: textOf(written.name) ?? folder,
    description: typeof description === 'string' ? cut(description.trim(), MAX_DESCRIPTION - 1) : description,
    ...(written.version !== undefined && { version: plainVersion(written.version, head) }),
    ...(typeof written.enabled === 'boolean' && { enabled: written.enabled }),
    ...(written['disable-model-invocation'] === true && { announced: false }),
    ...(written.metadata !== undefined && { metadata: written.metadata }),
    body: body.trim(),
  })
  if (!decoded.success) {
    const [issue] = decoded.issues
    const [member, ...below] = (issue.path ?? []).map(({ key }) => key as string | number)
    const field = fields.get(String(member))
    const what = `${issueLine(issue, 'frontmatter')}`
    throw field ? placed(field.positionOf(below), what) : new Error(what)
  }
  return { spec: decoded.output, unknown: Object.keys(written).filter(key => !KNOWN.has(key)), remarks }
}

/** Parses a YAML frontmatter; an invalid one is parsed again with its plain values quoted. */
function headOf(head: string, placed: (position: Position, what: string) => Error) {
  const remarks: string[] = []
  try {
    return { fields: parseHead(head), remarks }
  } catch (error) {
    const again = attempt(() => parseHead(asTexts(head)))
    if (again) {
      remarks.push(`its frontmatter is not valid YAML (${(error as Error).message}); values were taken as text`)
      return { fields: again, remarks }
    }
    throw error instanceof FrontmatterError ? placed(error.position, error.message) : error
  }
}

/**
 * Quotes values with colons or markup, which are syntax in YAML but common in files of other programs, and replaces
 * leading tabs.
 */
function asTexts(head: string): string {
  return head
    .split('\n')
    .map(line => {
      const [, name, value] = /^([A-Za-z_][\w-]*):[ \t]+(\S.*?)[ \t]*$/.exec(line) ?? []
      if (name === undefined || value === undefined) return line.replace(/^\t+/, tabs => '  '.repeat(tabs.length))
      return attempt(() => parseHead(line)) ? line : `${name}: ${JSON.stringify(value)}`
    })
    .join('\n')
}

function attempt(read: () => ReadonlyMap<string, HeadField>): ReadonlyMap<string, HeadField> | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Converts a number or boolean, which is an unquoted text. */
const textOf = (value: unknown): unknown =>
  typeof value === 'number' || typeof value === 'boolean' ? String(value) : value

/** The first paragraph that is not a heading, in one line; else the heading. */
function firstParagraph(body: string): string | undefined {
  const paragraphs = body.split(/\n[ \t]*\n/).map(one => one.trim())
  const plain = paragraphs.map(one => one.replace(/^(?:#.*(?:\n|$))+/, '').trim()).find(one => one !== '')
  return (plain ?? paragraphs.find(one => one !== '')?.replace(/^#+\s*/, ''))?.replace(/\s+/g, ' ')
}

/** YAML parses `1.10` as the number 1.1, so the version is taken from the text. */
const plainVersion = (version: unknown, head: string) =>
  typeof version === 'number' ? (/^version[ \t]*:[ \t]*([0-9.]+)/m.exec(head)?.[1] ?? String(version)) : version
