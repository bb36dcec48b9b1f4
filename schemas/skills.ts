/** The schemas of skills that other areas need. */
import * as v from 'valibot'

/** Why a skill is not active here. */
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

/** What discovery found about one skill. */
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
