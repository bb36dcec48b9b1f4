import type { HookEvent } from '../../schemas/hooks.js'
import { HOOK_SOURCES, type HookPayload, type HookSource, type NativeHook } from './api.js'
import { globTest } from './glob.js'
import type { HookSpec } from './hook-kind.js'

/** How a hook is run. */
export type Executor =
  | { readonly kind: 'native'; readonly run: NativeHook['run'] }
  /** The process of an extension is asked, by the key of that. */
  | { readonly kind: 'extension'; readonly key: string }
  | {
      readonly kind: 'subprocess'
      /** It stays, and is asked line by line. */
      readonly warm: boolean
      readonly command: string
      readonly args: readonly string[]
      readonly env: Readonly<Record<string, string>>
      /** References, by variable. */
      readonly secretEnv: Readonly<Record<string, string>>
      /** Folder that a command with a slash is relative to; empty: the home of the daemon. */
      readonly base: string
    }

/** A hook that is declared, whoever declared it. */
export interface DeclaredHook {
  readonly name: string
  readonly event: HookEvent
  readonly source: HookSource
  /** Whose: a plugin, an extension, an agent, a skill; empty for the configuration. */
  readonly owner: string
  readonly priority: number
  readonly mode: 'sync' | 'async'
  readonly required: boolean
  readonly enabled: boolean
  readonly matcher: HookSpec['matcher']
  readonly timeoutMs: number
  readonly metadata: Readonly<Record<string, string>>
  /** Only there; absent: everywhere. */
  readonly workspaceId?: string
  /** It came with the files of this workspace, which may have been changed since it was read. */
  readonly isOfFiles?: true
  readonly executor: Executor
  readonly matches: (payload: HookPayload) => boolean
}

/** Priorities of declarations that name none. */
const PRIORITY: Readonly<Record<HookSource, number>> = {
  native: 1000,
  config: 500,
  extension: 300,
  agent_definition: 100,
  skill: 0,
}

export const priorityOf = (source: HookSource, written: number | undefined): number => written ?? PRIORITY[source]

/** The order in which hooks of one event run: the source decides before the priority, the name last. */
export function inOrder(a: DeclaredHook, b: DeclaredHook): number {
  return (
    HOOK_SOURCES.indexOf(a.source) - HOOK_SOURCES.indexOf(b.source) ||
    b.priority - a.priority ||
    compare(a.name, b.name) ||
    compare(a.owner, b.owner)
  )
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** A hook, and the weaker sources that declare one of its name for its event and place. */
export interface Resolved {
  readonly hook: DeclaredHook
  readonly shadowed: readonly DeclaredHook[]
}

/** Hooks in their order, each with those that it hides. A disabled one hides as well: that is how one is switched off. */
export function resolve(hooks: readonly DeclaredHook[]): Resolved[] {
  const kept: { readonly hook: DeclaredHook; readonly shadowed: DeclaredHook[] }[] = []
  for (const hook of hooks.toSorted(inOrder)) {
    const stronger = kept.find(
      ({ hook: other }) =>
        other.source !== hook.source &&
        other.name === hook.name &&
        other.event === hook.event &&
        (other.workspaceId === undefined || other.workspaceId === hook.workspaceId),
    )
    if (stronger) stronger.shadowed.push(hook)
    else kept.push({ hook, shadowed: [] })
  }
  return kept
}

export type ByEvent = ReadonlyMap<HookEvent, readonly DeclaredHook[]>

/** All of them in their order; one that is disabled runs never, and hides weaker ones. */
export function byEvent(hooks: readonly DeclaredHook[]): ByEvent {
  const all = new Map<HookEvent, DeclaredHook[]>()
  for (const hook of hooks.toSorted(inOrder)) {
    const some = all.get(hook.event)
    if (some) some.push(hook)
    else all.set(hook.event, [hook])
  }
  return all
}

/** Is there one that runs? */
export const hasEnabled = (hooks: ByEvent | undefined, event: HookEvent): boolean =>
  hooks?.get(event)?.some(({ enabled }) => enabled) ?? false

/** The test of a valid matcher: every field that is set has to match; a field that an event lacks does not. */
export function matcherTest(matcher: HookSpec['matcher']): (payload: HookPayload) => boolean {
  const tests = Object.entries(matcher).flatMap(([name, wanted]): ((payload: HookPayload) => boolean)[] => {
    if (typeof wanted === 'boolean') return [payload => payload[name] === wanted]
    if (typeof wanted === 'object') {
      const inner = matcherTest(wanted)
      return [payload => inner((payload[name] ?? {}) as HookPayload)]
    }
    if (wanted === '' || wanted === '*') return []
    const test = globTest(wanted)
    return [payload => typeof payload[name] === 'string' && test(payload[name])]
  })
  return payload => tests.every(test => test(payload))
}
