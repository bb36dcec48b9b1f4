import path from 'node:path'
import { messageOf, type PluginKernel } from '../../kernel/plugin.js'
import { durationMs } from '../../schemas/duration.js'
import type { AgentDefinition } from '../agents/api.js'
import { type HookSource, NativeHooks } from './api.js'
import { type DeclaredHook, type Executor, matcherTest, priorityOf } from './declared.js'
import { HookKind, type HookSpec, hookProblem, specOf } from './hook-kind.js'
import { ConfiguredHooks } from './settings.js'

/** The longest time that anything waits for one hook. */
const LONGEST_MS = 300_000

interface Place {
  readonly source: HookSource
  readonly owner: string
  readonly workspaceId?: string | undefined
  /** Folder that commands are relative to; default: the home. */
  readonly base?: string
  readonly isOfFiles?: boolean | undefined
}

/** A declaration that was checked, as a hook. */
function declared(
  spec: HookSpec,
  { source, owner, workspaceId, base = '', isOfFiles }: Place,
  executor?: Executor,
): DeclaredHook {
  const { name, event, mode, required, matcher, enabled, metadata = {} } = spec
  return {
    ...{ name, event, source, owner, mode, required, matcher, enabled, metadata },
    priority: priorityOf(source, spec.priority),
    timeoutMs: Math.min(durationMs(spec.timeout ?? '') ?? LONGEST_MS, LONGEST_MS),
    ...(workspaceId !== undefined && { workspaceId }),
    ...(isOfFiles && { isOfFiles }),
    executor: executor ?? {
      kind: 'subprocess',
      warm: spec.warm ?? false,
      command: spec.command ?? '',
      args: spec.args ?? [],
      env: spec.env ?? {},
      secretEnv: spec.secret_env ?? {},
      base,
    },
    matches: matcherTest(matcher),
  }
}

/** What somebody wrote as a hook. Throws an Error that says what is wrong with it. */
export function hookOf(written: unknown, place: Place): DeclaredHook {
  const read = specOf(written)
  if ('problem' in read) throw new Error(read.problem)
  return declared(read.spec, place)
}

/** Every hook that is the same for all sessions. What is wrong with one is logged, and leaves the others alone. */
export function readDeclarations(kernel: PluginKernel): DeclaredHook[] {
  const all: DeclaredHook[] = []
  const attempt = (what: string, make: () => DeclaredHook) => {
    try {
      all.push(make())
    } catch (error) {
      kernel.log.warn(`the hook ${what} is not in force: ${messageOf(error)}`)
    }
  }
  for (const { owner, entry } of kernel.collect(NativeHooks))
    attempt(`${entry.name} of ${owner}`, () => {
      const { run, ...spec } = entry
      const mode = spec.mode ?? (spec.required ? 'sync' : 'async')
      const whole = {
        required: false,
        matcher: {},
        timeout: '5s',
        ...spec,
        mode,
        enabled: true,
        executor_kind: 'native' as const,
      }
      const problem = hookProblem({ ...whole, executor_kind: 'subprocess', command: '-' })
      if (problem !== undefined) throw new Error(problem)
      return declared(whole, { source: 'native', owner }, { kind: 'native', run })
    })
  for (const [name, entry] of Object.entries(kernel.config.get(ConfiguredHooks)))
    attempt(`${name} of config.json`, () => hookOf({ ...entry, name }, { source: 'config', owner: '' }))
  for (const { spec, source, scope } of kernel.records.list({ kind: HookKind }))
    attempt(`${spec.name} of ${source.id}`, () => {
      const isExtension = source.kind === 'extension'
      if (spec.process && !isExtension) throw new Error('process: only an extension has one')
      const workspaceId = scope.kind === 'workspace' ? scope.id : undefined
      const place: Place = { source: isExtension ? 'extension' : 'config', owner: source.id, workspaceId }
      return declared(spec, place, spec.process ? { kind: 'extension', key: source.id } : undefined)
    })
  return all
}

/** The hooks of an agent's definition, in a workspace. Throws for one that is wrong: a gate that cannot be built stays shut. */
export function readAgentHooks(
  definition: Pick<AgentDefinition, 'name' | 'hooks' | 'path' | 'source'>,
  workspaceId: string,
): DeclaredHook[] {
  const place: Place = {
    source: 'agent_definition',
    owner: definition.name,
    workspaceId,
    isOfFiles: definition.source === 'workspace',
    ...(definition.path !== undefined && { base: path.dirname(definition.path) }),
  }
  return definition.hooks.map(written => {
    try {
      return hookOf(written, place)
    } catch (error) {
      throw new Error(`the hook ${written.name} of the agent ${definition.name} is not valid: ${messageOf(error)}`)
    }
  })
}
