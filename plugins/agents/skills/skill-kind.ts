import * as v from 'valibot'
import { text } from '../../../kernel/kit/text.js'
import { kind } from '../../../kernel/plugin.js'
import { JsonMap } from '../../../schemas/kernel/common.js'

/** Maximum code units of a description. */
export const MAX_DESCRIPTION = 4096

const Gate = v.optional(v.pipe(v.array(text(256)), v.maxLength(256)))

/** Gates of a skill. The set is closed, so that a misspelt gate does not mean "always". */
export const When = v.strictObject({
  platforms: Gate,
  environments: Gate,
  requires_tools: Gate,
  requires_capabilities: Gate,
})
export type When = v.InferOutput<typeof When>

const SkillSpec = v.object({
  name: v.pipe(
    text(128),
    v.check(
      name => !/[/\\\p{Cc}\p{Cf}]/u.test(name) && name !== '.' && name !== '..',
      'a name without slashes and without invisible characters',
    ),
  ),
  description: text(MAX_DESCRIPTION),
  version: v.optional(text(64)),
  enabled: v.optional(v.boolean(), true),
  /** False: it is not announced to models, only people use it by name. */
  announced: v.optional(v.boolean()),
  /** Text of the SKILL.md below its frontmatter. */
  body: v.optional(v.string(), ''),
  /** Path in the package; shown, never opened. */
  source_path: v.optional(text(1024)),
  metadata: v.optional(
    v.intersect([JsonMap, v.looseObject({ svc: v.optional(v.looseObject({ when: v.optional(When) })) })]),
  ),
})
export type SkillSpec = v.InferOutput<typeof SkillSpec>

export { SkillSpec as SkillSchema }

/** Skills that packages and programs provide, as records. */
export const SkillKind = kind<SkillSpec>({ name: 'skill', spec: SkillSpec, maxBytes: 512 * 1024, onDemand: true })
