import path from 'node:path'
import { messageOf } from '../../../kernel/plugin.js'
import { durationMs } from '../../../schemas/duration.js'
import type { AgentDefinition } from '../../agents/agents/api.js'
import { type HookSource, NativeHooks } from './api.js'
import { claudeTest } from './claude-format.js'
import { type DeclaredHook, type Executor, matcherTest, priorityOf } from './declared.js'
import { HookKind, type HookSpec, hookProblem, specOf } from './hook-kind.js'
import type { K } from './needs.js'
import { ConfiguredHooks } from './settings.js'

/** Maximum timeout of a hook. */
const LONGEST_MS = 300_000

interface Origin {
  readonly source: HookSource
  readonly owner: string
  readonly workspaceId?: string | undefined
  /** Folder that commands are relative to; default: the svc home. */
  readonly base?: string
  readonly isOfFiles?: boolean | undefined
  /** Key of the extension that provides it. */
  readonly extension?: string | undefined
}

/** Converts a validated declaration into a hook. */
function declared(
  spec: HookSpec,
  { source, owner, workspaceId, base = '', isOfFiles, extension }: Origin,
  executor?: Executor,
): DeclaredHook {
  const { name, event, mode, required, matcher, enabled, metadata = {} } = spec
  return {
    ...{ name, event, source, owner, mode, required, matcher, enabled, metadata },
    priority: priorityOf(source, spec.priority),
    timeoutMs: Math.min(durationMs(spec.timeout ?? '') ?? LONGEST_MS, LONGEST_MS),
    ...(workspaceId !== undefined && { workspaceId }),
    ...(isOfFiles && { isOfFiles }),
    ...(extension !== undefined && { extension }),
    executor: executor ?? {
      kind: 'subprocess',
      warm: spec.warm ?? false,
      ...(spec.format === 'claude' && { format: spec.format }),
      command: spec.command ?? '',
      args: spec.args ?? [],
      env: spec.env ?? {},
      secretEnv: spec.secret_env ?? {},
      base,
    },
    matches: spec.format === 'claude' ? both(matcherTest(matcher), claudeTest(metadata)) : matcherTest(matcher),
  }
}

type Test = DeclaredHook['matches']
const both =
  (first: Test, second: Test): Test =>
  payload =>
    first(payload) && second(payload)

/** Parses a declaration into a hook. Throws an Error that describes the problem. */
export function hookOf(written: unknown, origin: Origin): DeclaredHook {
  const read = specOf(written)
  if ('problem' in read) throw new Error(read.problem)
  return declared(read.spec, origin)
}

/** Reads the hooks that apply to all sessions. An invalid declaration is logged and does not affect the others. */
export function readDeclarations(kernel: K): DeclaredHook[] {
  const all: DeclaredHook[] = []
  const attempt = (what: string, make: () => DeclaredHook) => {
    try {
      all.push(make())
    } catch (error) {
      kernel.log.warn(`hook ${what} is invalid and ignored: ${messageOf(error)}`)
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
      if (spec.process && !isExtension) throw new Error('process: only allowed for hooks of extensions')
      const workspaceId = scope.kind === 'workspace' ? scope.id : undefined
      const origin: Origin = {
        ...{ source: isExtension ? 'extension' : 'config', owner: source.id, workspaceId },
        extension: isExtension ? source.id : undefined,
      }
      return declared(spec, origin, spec.process ? { kind: 'extension', key: source.id } : undefined)
    })
  return all
}

/** The hooks of an agent definition in a workspace. Throws for an invalid one: the session must not start without it. */
export function readAgentHooks(
  definition: Pick<AgentDefinition, 'name' | 'hooks' | 'path' | 'source' | 'extension'>,
  workspaceId: string,
): DeclaredHook[] {
  const origin: Origin = {
    source: 'agent_definition',
    owner: definition.name,
    workspaceId,
    isOfFiles: definition.source === 'workspace',
    extension: definition.extension,
    ...(definition.path !== undefined && { base: path.dirname(definition.path) }),
  }
  return definition.hooks.map(written => {
    try {
      return hookOf(written, origin)
    } catch (error) {
      throw new Error(`hook ${written.name} of agent ${definition.name} is invalid: ${messageOf(error)}`)
    }
  })
}
