import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, event, token } from '../../../kernel/plugin.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { SkillMeta } from './tree-hash.js'

export { SkillKind, type SkillSpec } from './skill-kind.js'
export { META_FILE, type SkillMeta } from './tree-hash.js'

/** Sources of skills, weakest first: for equal names the later tier wins. */
export const TIERS = ['bundled', 'marketplace', 'user', 'additional', 'workspace', 'agent_local', 'extension'] as const
export type Tier = (typeof TIERS)[number]

/** The viewer of a skill lookup. */
export interface SkillView {
  readonly workspace?: Workspace | undefined
  /** Name of an agent. */
  readonly agent?: string | undefined
  /** Id of a session. */
  readonly session?: string | undefined
  /** Names of its process's environment; absent: unknown. */
  readonly environments?: readonly string[] | undefined
}

export interface SkillsApi {
  /** Folder below the home with skills of the user and of the marketplace. */
  readonly folder: string
  /** Makes the next lookup read the folders again, regardless of `skills.poll_interval`. */
  changed(): void
  /** Skills that were installed into the folder, by name, including those now refused. */
  managed(): Promise<readonly ManagedSkill[]>
  /**
   * Judges the files of a skill with its SKILL.md. Throws an Error with the problem, for example hidden text.
   */
  judge(files: readonly { readonly path: string; readonly bytes: Uint8Array }[]): JudgedSkill
}

/** An installed skill with its origin. */
export interface ManagedSkill {
  readonly name: string
  readonly dir: string
  readonly meta: SkillMeta
  /** Why its files differ from the installed ones; absent if they do not. */
  readonly failure?: string
}

export interface JudgedSkill {
  readonly name: string
  readonly version?: string
  /** Hash of the files, as in their `.svc-meta.json`. */
  readonly hash: string
  /** Warnings for a person. */
  readonly warnings: readonly string[]
}

export const Skills = token<SkillsApi>('skills@1')

/** A skill shadows another one of the same name. */
export const SkillShadowed = event(
  'skill.shadowed',
  v.object({
    name: v.string(),
    path: v.string(),
    tier: v.string(),
    winning_path: v.string(),
    winning_tier: v.string(),
  }),
)

export const SkillErrors = defineErrors({
  skill_not_found: { status: 404, message: 'no such skill', next: command('skill list') },
  skill_blocked: { status: 422, message: 'this skill was rejected, so its content is not available' },
  skill_invalid: { status: 422, message: 'this is not a valid skill' },
  skill_switch_refused: { status: 422, message: 'the skill cannot be enabled or disabled there' },
})
