import * as v from 'valibot'
import { issueText, type Setting } from '../../kernel/plugin.js'
import { HookSpec, hookProblem, Written } from './hook-kind.js'

const { name: _, ...members } = Written.entries

/** What is wrong with a declaration whose members are of the right types. */
function problemOf(declaration: unknown): string | undefined {
  const parsed = v.safeParse(HookSpec, { ...(declaration as object), name: 'x' })
  return parsed.success ? hookProblem(parsed.output) : issueText(parsed.issues[0])
}

/** A hook of the configuration; its name is its key. */
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
    v.record(
      v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/, 'a name of letters, digits, _, . and -')),
      Configured,
    ),
    v.maxEntries(500),
    v.description('Programs that are run when something happens, by name'),
  ),
  default: {},
  apply: 'live',
  merge: 'by-name',
}
