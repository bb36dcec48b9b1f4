/** Skills: instructions for agents, their sources, and why a skill is inactive. */
import * as v from 'valibot'
import { JsonMap, Timestamp } from './kernel/common.js'

/** Why a skill is inactive in this context. */
export const ActivationReason = v.object({
  code: v.picklist([
    'platform_mismatch',
    'environment_context_unavailable',
    'environment_mismatch',
    'tool_context_unavailable',
    'missing_tool',
    'capability_context_unavailable',
    'missing_capability',
  ]),
  gate: v.string(),
  message: v.string(),
  missing: v.optional(v.array(v.string())),
})
export type ActivationReason = v.InferOutput<typeof ActivationReason>

/** A discovery diagnostic of one skill. */
export const SkillDiagnostic = v.object({
  name: v.string(),
  activation_reasons: v.optional(v.array(ActivationReason)),
  failure: v.nullish(
    v.object({
      actual_hash: v.optional(v.string()),
      code: v.string(),
      expected_hash: v.optional(v.string()),
      message: v.string(),
    }),
  ),
  path: v.optional(v.string()),
  source: v.optional(v.string()),
  state: v.picklist(['valid', 'shadowed', 'verification_failed', 'inactive']),
  verification_status: v.picklist(['passed', 'warning', 'failed']),
  warnings: v.optional(
    v.array(
      v.object({
        message: v.string(),
        pattern: v.optional(v.string()),
        severity: v.string(),
      }),
    ),
  ),
  winning_path: v.optional(v.string()),
  winning_source: v.optional(v.string()),
})
export type SkillDiagnostic = v.InferOutput<typeof SkillDiagnostic>

/** One of several skills of the same name. */
export const ShadowEntry = v.object({
  detected_at: Timestamp,
  path: v.string(),
  resolved_to_winner: v.boolean(),
  tier: v.string(),
})
export type ShadowEntry = v.InferOutput<typeof ShadowEntry>

export const Skill = v.object({
  name: v.string(),
  description: v.string(),
  dir: v.string(),
  source: v.string(),
  enabled: v.boolean(),
  activation: v.object({ active: v.boolean(), reasons: v.optional(v.array(ActivationReason)) }),
  version: v.optional(v.string()),
  metadata: v.optional(JsonMap),
  provenance: v.nullish(
    v.object({
      precedence_tier: v.string(),
      installed_at: v.nullish(Timestamp),
      installed_from_bundle: v.optional(v.string()),
      installed_from_extension: v.optional(v.string()),
      registry: v.optional(v.string()),
      shadowed_by: v.optional(v.array(ShadowEntry)),
      slug: v.optional(v.string()),
      version: v.optional(v.string()),
    }),
  ),
  diagnostics: v.optional(v.array(SkillDiagnostic)),
})
export type Skill = v.InferOutput<typeof Skill>

const reference = v.optional(v.pipe(v.string(), v.maxLength(4096)))

/** Context of the request: a workspace by id, name or path, and an agent by name. */
export const SkillContext = v.object({ workspace: reference, for_agent: reference })
export type SkillContext = v.InferOutput<typeof SkillContext>

export const ListSkillsReply = v.object({
  skills: v.array(Skill),
  /** Files that could not be read as a skill. */
  diagnostics: v.optional(v.array(SkillDiagnostic)),
})
export type ListSkillsReply = v.InferOutput<typeof ListSkillsReply>
export const SkillReply = v.object({ skill: Skill })
export const SkillContentReply = v.object({ content: v.string() })
export const SkillSwitchReply = v.object({ ok: v.boolean() })
export const SkillShadowsReply = v.object({ name: v.string(), shadows: v.array(ShadowEntry), winner: ShadowEntry })
export type SkillShadowsReply = v.InferOutput<typeof SkillShadowsReply>
