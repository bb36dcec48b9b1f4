import * as v from 'valibot'
import {
  FrontmatterError,
  type HeadField,
  headValues,
  type Position,
  parseHead,
  splitFrontmatter,
} from '../../../kernel/kit/frontmatter.js'
import { issueText } from '../../../kernel/kit/issue-text.js'
import { cut } from '../../../kernel/kit/text.js'
import { MAX_DESCRIPTION, SkillSchema, type SkillSpec } from './skill-kind.js'

export const SKILL_FILE = 'SKILL.md'
/** Largest SKILL.md, in bytes. */
export const MAX_SKILL_BYTES = 512 * 1024

/** Members of the frontmatter that mean something here, or to other readers of the same files. */
const KNOWN = new Set([
  ...['name', 'description', 'version', 'metadata', 'license', 'compatibility', 'allowed-tools'],
  ...['disable-model-invocation', 'user-invocable', 'argument-hint', 'enabled'],
])

/** What a SKILL.md says. */
export interface SkillFile {
  readonly spec: SkillSpec
  /** Members of its frontmatter that mean nothing here. */
  readonly unknown: readonly string[]
  /** What was read otherwise than it is written. */
  readonly remarks: readonly string[]
}

/** The name of the SKILL.md in a folder: some programs write it in another case. */
export const skillFileIn = (names: readonly string[]): string | undefined =>
  names.includes(SKILL_FILE) ? SKILL_FILE : names.find(name => name.toLowerCase() === 'skill.md')

/**
 * What a SKILL.md says. Files as other programs write them are read: without a name, a description or any frontmatter, with members
 * that are null, with colons and markup in plain values. Throws an Error that says what is wrong, with line and column.
 * @param folder name of a skill that does not state one
 */
export function parseSkillFile(text: string, folder?: string): SkillFile {
  const lines = text.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n')
  const split = splitFrontmatter(lines.trimStart())
  if (split === 'open') throw new Error('line 1: a second line --- closes the frontmatter, and there is none')
  const { head, body } = split === 'none' ? { head: '', body: lines } : split
  const blank = lines.slice(0, lines.length - lines.trimStart().length).split('\n').length - 1
  const placed = ({ line, column }: Position, what: string) =>
    new Error(`line ${line + blank}, column ${column}: ${what}`)
  const { fields, remarks } = headOf(head, placed)
  const written = Object.fromEntries(Object.entries(headValues(fields)).filter(([, value]) => value !== null))
  const description = textOf(written.description) ?? firstParagraph(body)
  if (typeof description === 'string' && description.length > MAX_DESCRIPTION)
    remarks.push(`its description is cut after ${MAX_DESCRIPTION} characters`)
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
    const what = `${v.getDotPath(issue) ?? 'frontmatter'}: ${issueText(issue)}`
    throw field ? placed(field.positionOf(below), what) : new Error(what)
  }
  return { spec: decoded.output, unknown: Object.keys(written).filter(key => !KNOWN.has(key)), remarks }
}

/** A head in YAML; one that is none is read again with the plain values of its own members as text. */
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

/** Colons and markup begin something in YAML; values of other programs have them all the same. So do tabs before names. */
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

/** Numbers are texts that nobody put in quotation marks. */
const textOf = (value: unknown): unknown =>
  typeof value === 'number' || typeof value === 'boolean' ? String(value) : value

/** The first paragraph of a text that is no heading, in one line; else the heading. */
function firstParagraph(body: string): string | undefined {
  const paragraphs = body.split(/\n[ \t]*\n/).map(one => one.trim())
  const plain = paragraphs.map(one => one.replace(/^(?:#.*(?:\n|$))+/, '').trim()).find(one => one !== '')
  return (plain ?? paragraphs.find(one => one !== '')?.replace(/^#+\s*/, ''))?.replace(/\s+/g, ' ')
}

/** YAML takes `1.10` for the number 1.1: a version is what the file has. */
const plainVersion = (version: unknown, head: string) =>
  typeof version === 'number' ? (/^version[ \t]*:[ \t]*([0-9.]+)/m.exec(head)?.[1] ?? String(version)) : version
