import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, event, token } from '../../../kernel/plugin.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { SkillMeta } from './tree-hash.js'

export { SkillKind, type SkillSpec } from './skill-kind.js'
export { META_FILE, type SkillMeta } from './tree-hash.js'

/** Where skills come from, the weakest first: of two with one name that of the later tier is used. */
export const TIERS = ['bundled', 'marketplace', 'user', 'additional', 'workspace', 'agent_local', 'extension'] as const
export type Tier = (typeof TIERS)[number]

/** For whom skills are looked up. */
export interface SkillView {
  readonly workspace?: Workspace | undefined
  /** Name of an agent. */
  readonly agent?: string | undefined
  /** Id of a session. */
  readonly session?: string | undefined
  /** Names of the environment that its process runs in; absent: not known. */
  readonly environments?: readonly string[] | undefined
}

export interface SkillsApi {
  /** The folder below the home with the skills of the user and of the marketplace. */
  readonly folder: string
  /** Looks at the folders again with the next question, whatever `skills.poll_interval` says. */
  changed(): void
  /** Skills that were installed into the folder, by name; also those that are refused by now. */
  managed(): Promise<readonly ManagedSkill[]>
  /**
   * What a SKILL.md with these files beside it would be. Throws an Error that says what is wrong, hidden text included.
   */
  judge(files: readonly { readonly path: string; readonly bytes: Uint8Array }[]): JudgedSkill
}

/** A skill that was installed, and where from. */
export interface ManagedSkill {
  readonly name: string
  readonly dir: string
  readonly meta: SkillMeta
  /** Why its files are not those that were installed; absent while they are. */
  readonly failure?: string
}

export interface JudgedSkill {
  readonly name: string
  readonly version?: string
  /** Of the files, as it stands in their `.svc-meta.json`. */
  readonly hash: string
  /** What a person should look at. */
  readonly warnings: readonly string[]
}

export const Skills = token<SkillsApi>('skills@1')

/** A skill has taken the place of another one of its name. */
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
  skill_blocked: { status: 422, message: 'this skill was refused, so its content is not handed out' },
  skill_invalid: { status: 422, message: 'this is not a valid skill' },
  skill_switch_refused: { status: 422, message: 'the skill cannot be switched on or off there' },
})
