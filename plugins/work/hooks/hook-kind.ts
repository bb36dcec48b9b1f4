import * as v from 'valibot'
import { issueText } from '../../../kernel/kit/issue-text.js'
import { secretRef } from '../../../kernel/kit/secret-ref.js'
import { shown, text } from '../../../kernel/kit/text.js'
import { kind } from '../../../kernel/plugin.js'
import { HookEvent } from '../../../schemas/hooks.js'
import { StringMap } from '../../../schemas/kernel/common.js'
import { mapOf } from '../../../schemas/kernel/map-of.js'
import { claudeProblem } from './claude-format.js'
import { fieldsOf, vocabularyOf } from './families.js'
import { globOf, globTest, isGlob } from './glob.js'
import { hookEvents } from './hook-events.js'

/** The author of the record limits its references: an extension can use only its own secrets. */
const Reference = secretRef({ env: '', vault: ['hooks/', 'extensions/'] })
const Duration = v.pipe(
  v.string(),
  v.regex(/^(?:\d{1,9}(?:\.\d{1,6})?(?:ms|s|m|h))+$/, 'must be a duration such as 5s or 1m30s'),
)
const ExecutorKind = v.picklist(['native', 'subprocess', 'wasm'])

/** Default timeout of a hook program. */
const SUBPROCESS_TIMEOUT = '5s'

/** Executor fields, written either at the top level or in `executor`. */
const executor = {
  command: v.optional(text(4096)),
  args: v.optional(v.array(v.string())),
  env: v.optional(StringMap),
  secret_env: v.optional(mapOf(v.string(), Reference)),
  timeout: v.optional(Duration),
  /** Keep the program running and send it one JSON line per event, instead of starting it for each event. */
  warm: v.optional(v.boolean()),
  /** `claude`: the program was written for Claude Code; it uses the input and output format of Claude Code. */
  format: v.optional(v.picklist(['svc', 'claude'])),
}

export const Written = v.object({
  ...executor,
  name: text(128),
  event: HookEvent,
  executor_kind: v.optional(ExecutorKind),
  executor: v.optional(v.object({ ...executor, kind: v.optional(ExecutorKind) })),
  mode: v.optional(v.picklist(['sync', 'async'])),
  required: v.optional(v.boolean(), false),
  enabled: v.nullish(v.boolean()),
  priority: v.optional(v.pipe(v.number(), v.integer())),
  matcher: v.optional(mapOf(v.string(), v.union([v.string(), v.boolean(), StringMap])), {}),
  metadata: v.optional(StringMap),
})

/** A declaration in a record: `process` selects the process of the extension instead of a command. */
const Recorded = v.object({ ...Written.entries, process: v.optional(v.boolean()) })

/** Members that may stand at the top level or in `executor`, but not in both. */
const running = ['command', 'args', 'env', 'secret_env', 'timeout', 'warm', 'format'] as const

type Given = v.InferOutput<typeof Recorded>

function canonical(value: Given, refuse: (message: string) => never) {
  const { executor: nested, enabled, ...flat } = value
  const mixed = nested && [...running, 'executor_kind' as const].find(member => flat[member] !== undefined)
  if (mixed) return refuse(`${mixed}: set the executor fields either at the top level or in executor, not both`)
  const { kind: nestedKind, ...inner } = nested ?? {}
  const mode = flat.mode ?? (flat.required ? ('sync' as const) : ('async' as const))
  const executor_kind = nestedKind ?? flat.executor_kind ?? ('subprocess' as const)
  return { timeout: SUBPROCESS_TIMEOUT, ...flat, ...inner, mode, executor_kind, enabled: enabled ?? true }
}

/** The canonical form: executor fields at the top level and all defaults filled in. */
export const HookSpec = v.pipe(
  Written,
  v.rawTransform(({ dataset: { value }, addIssue, NEVER }) =>
    canonical(value, message => {
      addIssue({ message })
      return NEVER
    }),
  ),
)
const RecordedSpec = v.pipe(
  Recorded,
  v.rawTransform(({ dataset: { value }, addIssue, NEVER }) =>
    canonical(value, message => {
      addIssue({ message })
      return NEVER
    }),
  ),
)
export type HookSpec = v.InferOutput<typeof RecordedSpec>

/** Checks the rules that the schema cannot express; undefined when all hold. */
export function hookProblem(spec: HookSpec): string | undefined {
  const { event, mode, executor_kind, process, command } = spec
  if (executor_kind === 'wasm') return 'executor_kind: wasm is reserved and not implemented'
  if (executor_kind === 'native') return 'executor_kind: native is reserved for plugins of the daemon; use subprocess'
  if (process && command !== undefined) return 'process: cannot be combined with command'
  if (!process && command === undefined) return 'command: required'
  if (spec.format === 'claude') {
    if (process || spec.warm) return 'format: claude is for a program that is started for each event'
    const problem = claudeProblem(event, spec.metadata)
    if (problem !== undefined) return problem
  }
  if (spec.required && mode === 'async') return 'mode: a required hook must be sync'
  if (mode === 'sync' && !hookEvents[event].sync) return `mode: ${event} does not support sync hooks; use async`
  return matcherProblem(spec)
}

const TYPES = { boolean: 'true or false', object: 'an object', string: 'a string' } as const

function matcherProblem({ event, matcher }: HookSpec): string | undefined {
  const allowed = fieldsOf(event)
  for (const [name, wanted] of Object.entries(matcher)) {
    const at = `matcher.${name}`
    if (!allowed.includes(name)) return `${at}: not a field of ${event}; allowed: ${allowed.join(', ')}`
    const type = name === 'tool_read_only' ? 'boolean' : name === 'autonomy' ? 'object' : 'string'
    if (typeof wanted !== type) return `${at}: must be ${TYPES[type]}`
    for (const glob of typeof wanted === 'object' ? Object.values(wanted) : [wanted])
      if (typeof glob === 'string' && !isGlob(glob)) return `${at}: invalid pattern; use *, ? and [abc]`
    const vocabulary = vocabularyOf(event, name)
    const unknown = vocabulary && typeof wanted === 'string' ? unmatched(wanted, vocabulary) : undefined
    if (unknown !== undefined) return `${at}: ${unknown}`
  }
  return undefined
}

/** Reason for which a pattern matches no value of a vocabulary, with a correction; undefined when it matches one. */
function unmatched(pattern: string, vocabulary: readonly string[]): string | undefined {
  if (vocabulary.some(globTest(pattern))) return undefined
  const words = pattern.split('|').map(word => vocabulary.find(known => known === word.trim().toLowerCase()))
  const meant = words.filter(word => word !== undefined)
  const values = `values are ${vocabulary.join(', ')}`
  if (meant.length === 0 || meant.length < words.length) return `${shown(pattern, 64)} matches no value; ${values}`
  const glob = globOf(meant, vocabulary)
  if (words.length === 1) return `${shown(pattern, 64)} matches no value; write ${glob}`
  const instead = glob ? `write ${glob}` : `declare a hook for each of ${meant.join(', ')}`
  return `${shown(pattern, 64)} matches no value, because | is no part of a pattern; ${instead}`
}

/** Parses a declaration: the canonical form, or the problem. */
export function specOf(written: unknown): { readonly spec: HookSpec } | { readonly problem: string } {
  const parsed = v.safeParse(HookSpec, written)
  if (!parsed.success) {
    const [issue] = parsed.issues
    return { problem: `${issue.path?.map(({ key }) => String(key)).join('.') ?? ''} ${issueText(issue)}`.trim() }
  }
  const problem = hookProblem(parsed.output)
  return problem === undefined ? { spec: parsed.output } : { problem }
}

/** The record kind of hooks provided by extensions and API clients. */
export const HookKind = kind<HookSpec>({
  name: 'hook.binding',
  spec: RecordedSpec,
  maxBytes: 256 * 1024,
  check: ({ spec }) => hookProblem(spec),
})
