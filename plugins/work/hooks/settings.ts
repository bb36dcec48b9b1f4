import * as v from 'valibot'
import { issueText } from '../../../kernel/kit/issue-text.js'
import { parseSecretRef } from '../../../kernel/kit/secret-ref.js'
import type { Setting } from '../../../kernel/plugin.js'
import { mapOf } from '../../../schemas/kernel/map-of.js'
import { HookSpec, hookProblem, Written } from './hook-kind.js'

const { name: _, ...members } = Written.entries

/** Validates a declaration whose members have the right types. */
function problemOf(declaration: unknown): string | undefined {
  const parsed = v.safeParse(HookSpec, { ...(declaration as object), name: 'x' })
  if (!parsed.success) return issueText(parsed.issues[0])
  const foreign = Object.entries(parsed.output.secret_env ?? {}).find(
    ([, reference]) => parseSecretRef(reference)?.rest.startsWith('extensions/') === true,
  )
  if (foreign)
    return `secret_env.${foreign[0]}: a hook in the configuration may use only its own secrets: vault:hooks/…`
  return hookProblem(parsed.output)
}

/** A hook of the configuration; the key is its name. */
const Configured = v.pipe(
  v.strictObject({ ...members, name: v.optional(v.string()) }),
  v.check(
    declaration => problemOf(declaration) === undefined,
    ({ input }) => problemOf(input) ?? '',
  ),
)
export type Configured = v.InferOutput<typeof Configured>

/** Hooks by name. */
export const ConfiguredHooks: Setting<Record<string, Configured>> = {
  path: 'hooks',
  section: 'hooks',
  schema: v.pipe(
    mapOf(
      v.pipe(
        v.string(),
        v.regex(
          /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/,
          'must start with a letter or digit and contain only letters, digits, _, . and -',
        ),
      ),
      Configured,
    ),
    v.maxEntries(500),
    v.description('Hooks by name: programs that run on events'),
  ),
  default: {},
  apply: 'live',
  merge: 'by-name',
  // An invalid value of `required` may have been meant as true.
  guards: entry => ![undefined, false].includes((Object(entry) as { required?: boolean }).required),
}
