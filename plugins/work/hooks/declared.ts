import type { HookEvent } from '../../../schemas/hooks.js'
import { HOOK_SOURCES, type HookPayload, type HookSource, type NativeHook } from './api.js'
import { globTest } from './glob.js'
import type { HookSpec } from './hook-kind.js'

/** The executor of a hook. */
export type Executor =
  | { readonly kind: 'native'; readonly run: NativeHook['run'] }
  /** The process of the extension with this key. */
  | { readonly kind: 'extension'; readonly key: string }
  | {
      readonly kind: 'subprocess'
      /** The program keeps running and reads one JSON line per event. */
      readonly warm: boolean
      /** Absent: the svc format. */
      readonly format?: 'claude'
      readonly command: string
      readonly args: readonly string[]
      readonly env: Readonly<Record<string, string>>
      /** Secret references by variable name. */
      readonly secretEnv: Readonly<Record<string, string>>
      /** Folder that a command with a slash is relative to; empty for the svc home. */
      readonly base: string
    }

/** A declared hook of any source. */
export interface DeclaredHook {
  readonly name: string
  readonly event: HookEvent
  readonly source: HookSource
  /** The plugin, extension, agent or skill; empty for the configuration. */
  readonly owner: string
  readonly priority: number
  readonly mode: 'sync' | 'async'
  readonly required: boolean
  readonly enabled: boolean
  readonly matcher: HookSpec['matcher']
  readonly timeoutMs: number
  readonly metadata: Readonly<Record<string, string>>
  /** Limits the hook to one workspace. */
  readonly workspaceId?: string
  /** Declared in files of the workspace, which may have changed since. */
  readonly isOfFiles?: true
  /** Key of the extension that provides it: the hook runs as that extension, with its secrets. */
  readonly extension?: string
  readonly executor: Executor
  readonly matches: (payload: HookPayload) => boolean
}

/** Default priorities. */
const PRIORITY: Readonly<Record<HookSource, number>> = {
  native: 1000,
  config: 500,
  extension: 300,
  agent_definition: 100,
  skill: 0,
}

export const priorityOf = (source: HookSource, written: number | undefined): number => written ?? PRIORITY[source]

/** Execution order of the hooks of an event: by source, then priority, then name. */
export function inOrder(a: DeclaredHook, b: DeclaredHook): number {
  return (
    HOOK_SOURCES.indexOf(a.source) - HOOK_SOURCES.indexOf(b.source) ||
    b.priority - a.priority ||
    compare(a.name, b.name) ||
    compare(a.owner, b.owner)
  )
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** A hook with the declarations that it shadows. */
export interface Resolved {
  readonly hook: DeclaredHook
  readonly shadowed: readonly DeclaredHook[]
}

/** Orders hooks and resolves shadowing. A disabled hook also shadows: that is how a hook of a later source is disabled. */
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

/** All hooks by event, in execution order. A disabled hook does not run, but shadows weaker ones. */
export function byEvent(hooks: readonly DeclaredHook[]): ByEvent {
  const all = new Map<HookEvent, DeclaredHook[]>()
  for (const hook of hooks.toSorted(inOrder)) {
    const some = all.get(hook.event)
    if (some) some.push(hook)
    else all.set(hook.event, [hook])
  }
  return all
}

/** Whether an enabled hook is declared for the event. */
export const hasEnabled = (hooks: ByEvent | undefined, event: HookEvent): boolean =>
  hooks?.get(event)?.some(({ enabled }) => enabled) ?? false

/** Compiles a valid matcher. Every field that is set must match; a field missing in the payload does not match. */
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

/** Owner name of the guards for required hooks. */
export const GUARD = 'hooks'
