import type { SkillDiagnostic } from '../../../schemas/skills.js'
import type { Tier } from './api.js'
import type { ScanWarning } from './scan.js'
import type { SkillSpec } from './skill-kind.js'
import type { SkillMeta } from './tree-hash.js'

/** One skill as it was found somewhere; whether it is the one that is used depends on the others of its name. */
export interface Candidate {
  readonly name: string
  readonly tier: Tier
  /** Of its SKILL.md; of a record the path that its package gives. */
  readonly path: string
  readonly dir: string
  /** It lies in a workspace: somebody else may have written it. */
  readonly ofWorkspace: boolean
  readonly spec: SkillSpec
  /** What the scan found, and what is odd in its frontmatter. */
  readonly warnings: readonly (ScanWarning | Warning)[]
  /** Why it is not handed out at all. */
  readonly failure?: NonNullable<SkillDiagnostic['failure']>
  readonly meta?: SkillMeta
  /** Of a record: the extension, and the bundle that brought it. */
  readonly extension?: string
  /** Key of that extension. */
  readonly extensionKey?: string
  readonly bundle?: string
}

/** What is odd about a skill and does not keep it from being used. */
export type Warning = { readonly pattern: string; readonly severity: 'info' | 'warning'; readonly message: string }

/** A file that should be a skill and cannot be read as one. */
export interface Broken {
  readonly path: string
  readonly tier: Tier
  readonly message: string
}

/** What one place has, in an order that decides between two of one name there: the first is used. */
export interface Findings {
  readonly candidates: readonly Candidate[]
  readonly broken: readonly Broken[]
}

/** What of `metadata.svc` a skill may bring. */
export type Member = 'mcp_servers' | 'hooks'

/** What a skill declares, unread. */
export const declaredIn = ({ spec }: Candidate, member: Member): unknown =>
  (spec.metadata as { svc?: Partial<Record<Member, unknown>> } | undefined)?.svc?.[member]

/** The failure of a text with something critical in it. */
export function refusal(warnings: readonly ScanWarning[]): Candidate['failure'] {
  const critical = warnings.find(({ severity }) => severity === 'critical')
  return critical && { code: 'hidden_content', message: critical.message }
}
