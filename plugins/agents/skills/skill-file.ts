import * as v from 'valibot'
import { headValues, parseHead, splitFrontmatter } from '../../../kernel/kit/frontmatter.js'
import { issueText } from '../../../kernel/kit/issue-text.js'
import { SkillSchema, type SkillSpec } from './skill-kind.js'

export const SKILL_FILE = 'SKILL.md'
/** Largest SKILL.md, in bytes. */
export const MAX_SKILL_BYTES = 512 * 1024

/** Members of the frontmatter that mean something here, or to other readers of the same files. */
const KNOWN = new Set(['name', 'description', 'version', 'metadata', 'license', 'compatibility', 'allowed-tools'])

/** What a SKILL.md says, with unknown members of its frontmatter as warnings. Throws an Error that says what is wrong. */
export function parseSkillFile(text: string): { readonly spec: SkillSpec; readonly unknown: readonly string[] } {
  const split = splitFrontmatter(text.replace(/^\uFEFF/, ''))
  if (typeof split === 'string')
    throw new Error('it must start with a line ---, and a second one closes the frontmatter')
  const head = headValues(parseHead(split.head))
  const { name, description, version, metadata } = head
  const fields = {
    name,
    description,
    ...(version !== undefined && { version: plainVersion(version, split.head) }),
    metadata,
  }
  const decoded = v.safeParse(SkillSchema, { ...fields, body: split.body.trim() })
  if (!decoded.success) {
    const [issue] = decoded.issues
    throw new Error(`${v.getDotPath(issue) ?? 'frontmatter'}: ${issueText(issue)}`)
  }
  return { spec: decoded.output, unknown: Object.keys(head).filter(key => !KNOWN.has(key)) }
}

/** YAML takes `1.10` for the number 1.1: a version is what the file has. */
const plainVersion = (version: unknown, head: string) =>
  typeof version === 'number' ? (/^version[ \t]*:[ \t]*([0-9.]+)/m.exec(head)?.[1] ?? String(version)) : version
