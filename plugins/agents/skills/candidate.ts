import type { SkillDiagnostic } from '../../../schemas/skills.js'
import type { Tier } from './api.js'
import type { ScanWarning } from './scan.js'
import type { SkillSpec } from './skill-kind.js'
import type { SkillMeta } from './tree-hash.js'

/** One found skill; other skills with its name decide whether it is used. */
export interface Candidate {
  readonly name: string
  readonly tier: Tier
  /** Path of its SKILL.md; for a record the path given by its package. */
  readonly path: string
  readonly dir: string
  /** Whether it is in a workspace and thus of unknown origin. */
  readonly ofWorkspace: boolean
  readonly spec: SkillSpec
  /** Results of the scan, and remarks on the frontmatter. */
  readonly warnings: readonly (ScanWarning | Warning)[]
  /** Why it is refused. */
  readonly failure?: NonNullable<SkillDiagnostic['failure']>
  readonly meta?: SkillMeta
  /** For a record: its extension and bundle. */
  readonly extension?: string
  /** Key of that extension. */
  readonly extensionKey?: string
  readonly bundle?: string
}

/** A remark on a skill that does not prevent its use. */
export type Warning = { readonly pattern: string; readonly severity: 'info' | 'warning'; readonly message: string }

/** A file that should be a skill but is unreadable. */
export interface Broken {
  readonly path: string
  readonly tier: Tier
  readonly message: string
}

/** Skills of one place, ordered so that the first of a name wins. */
export interface Findings {
  readonly candidates: readonly Candidate[]
  readonly broken: readonly Broken[]
}

/** Members of `metadata.svc` that a skill may declare. */
export type Member = 'mcp_servers' | 'hooks'

/** Unvalidated value of a declared member. */
export const declaredIn = ({ spec }: Candidate, member: Member): unknown =>
  (spec.metadata as { svc?: Partial<Record<Member, unknown>> } | undefined)?.svc?.[member]

/** The failure for a text with a critical finding. */
export function refusal(warnings: readonly ScanWarning[]): Candidate['failure'] {
  const critical = warnings.find(({ severity }) => severity === 'critical')
  return critical && { code: 'hidden_content', message: critical.message }
}
