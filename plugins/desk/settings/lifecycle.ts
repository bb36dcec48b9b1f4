import { isDeepStrictEqual } from 'node:util'
import type { ApplyLifecycle, ApplyStatus, NextAction } from '../../../schemas/settings.js'
import type { PlannedChange } from '../../platform/configuration/api.js'

/** Classes of changes, from immediate effect to the longest delay. */
const strictness: readonly ApplyLifecycle[] = [
  'live',
  'live-add',
  'live-remove-if-unused',
  'session-rebind',
  'restart-required',
]

/** Status and next step of a change, by its class. */
export const outcomes: Readonly<Record<ApplyLifecycle, { readonly status: ApplyStatus; readonly next: NextAction }>> = {
  live: { status: 'applied', next: 'none' },
  'live-add': { status: 'applied', next: 'none' },
  'live-remove-if-unused': { status: 'applied', next: 'none' },
  'session-rebind': { status: 'applied', next: 'new-session' },
  'restart-required': { status: 'blocked', next: 'restart-daemon' },
}

type Entries = Readonly<Record<string, unknown>>

/** Settings that are maps of named entries, each added and removed on its own. */
const ENTRIES: ReadonlySet<string> = new Set(['providers', 'hooks', 'mcp_servers'])

/** The class of one planned change. */
function classOf({ path, name, before, after, apply }: PlannedChange): ApplyLifecycle {
  if (apply === 'none') return 'live'
  if (!ENTRIES.has(path) || name === undefined) return apply
  // A new entry takes effect at once. Running processes keep the entry that they were started with.
  const [was, will] = [(before as Entries)[name], (after as Entries)[name]]
  if (was === undefined) return 'live-add'
  if (will === undefined) return 'live-remove-if-unused'
  return path === 'providers' && isDeepStrictEqual(withoutModels(was), withoutModels(will)) ? 'live' : apply
}

const withoutModels = (entry: unknown) => ({ ...(entry as Entries), models: undefined })

/** The class with the longest delay. */
export const strictest = (classes: readonly ApplyLifecycle[]): ApplyLifecycle =>
  strictness.findLast(one => classes.includes(one)) ?? 'live'

/** The strictest class of the changes. */
export const lifecycleOf = (changes: readonly PlannedChange[]): ApplyLifecycle => strictest(changes.map(classOf))
