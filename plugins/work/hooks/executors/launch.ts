import { realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { resolveSecret } from '../../../../kernel/kit/secret-ref.js'
import { DEFAULT_PROFILE, spawnConfined } from '../../../access/sandboxes/api.js'
import { ISOLATED, searchPath } from '../../../agents/providers/api.js'
import { askerOf, ownerOf } from '../../../delivery/extensions/api.js'
import type { ProcessHandle, SpawnRequest } from '../../../platform/processes/api.js'
import { isWithheld } from '../../../platform/processes/api.js'
import type { DeclaredHook, Executor } from '../declared.js'
import type { K } from '../needs.js'

export type Program = Extract<Executor, { kind: 'subprocess' }>

/** Label of the process. */
export const hookLabel = ({ name }: Pick<DeclaredHook, 'name'>) => `hook ${name}`

/**
 * Starts a hook program. A program from a catalog runs in a sandbox, with the folders of the event's workspace.
 * @throws Fault `secret_missing` and the other faults of a reference, `sandbox_unusable`
 */
export async function startHook(
  kernel: K,
  hook: DeclaredHook,
  program: Program,
  workspaceId: string | undefined,
  depth: number,
): Promise<ProcessHandle> {
  const { needs, ids } = kernel
  const owner = ownerOf(needs.extensions.current, hook.extension)
  const request = await launchOf(kernel, hook, program, workspaceId, depth)
  if (!owner?.confined) return needs.processes.spawn(request)
  const workspace = workspaceId === undefined ? undefined : needs.workspaces.get(workspaceId)
  const sandbox = {
    profile: DEFAULT_PROFILE,
    roots: workspace ? [workspace.rootDir, ...workspace.addDirs] : [],
    shows: owner.root === undefined ? [] : [owner.root],
    fromCatalog: owner.name,
  }
  return spawnConfined(kernel, `hook_${ids.hex(16)}`, sandbox, request)
}

/**
 * The spawn request of a hook program: an argument list without a shell, an allowlist of the daemon's environment and the
 * declared variables. A command with a slash is relative to the folder of its declaration.
 * @throws Fault `secret_missing` and the other faults of a reference
 */
async function launchOf(
  kernel: K,
  hook: DeclaredHook,
  program: Program,
  workspaceId: string | undefined,
  depth: number,
): Promise<SpawnRequest> {
  const { env, home, needs } = kernel
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] => ISOLATED.test(entry[0]) && entry[1] !== undefined && !isWithheld(entry[0]),
  )
  const owner = ownerOf(needs.extensions.current, hook.extension)
  const asker = owner ? askerOf(kernel, owner) : kernel
  const secrets: [string, string][] = []
  for (const [name, reference] of Object.entries(program.secretEnv))
    secrets.push([name, await resolveSecret(asker, reference, `${name} of hook ${hook.name}`)])
  const base = program.base || home.root
  const command = program.command.includes('/') ? path.resolve(base, program.command) : program.command
  const root = workspaceId === undefined ? undefined : needs.workspaces.get(workspaceId)?.rootDir
  return {
    label: hookLabel(hook),
    ...(hook.owner !== '' && { onBehalfOf: hook.owner }),
    argv: [command, ...program.args],
    cwd: (root !== undefined && (await folder(root))) || home.root,
    env: {
      ...Object.fromEntries(kept),
      PATH: searchPath(env).join(path.delimiter),
      ...program.env,
      ...Object.fromEntries(secrets),
      ...(program.format === 'claude' && { CLAUDE_PROJECT_DIR: root ?? home.root }),
      SVC_HOOK_NAME: hook.name,
      SVC_HOOK_EVENT: hook.event,
      // `svc` passes this on with every request to the daemon.
      SVC_HOOK_DEPTH: String(depth),
    },
    stdio: 'pipe',
  }
}

/** The canonical path of a folder; undefined when it does not exist. */
async function folder(root: string): Promise<string | undefined> {
  try {
    const real = await realpath(root)
    return (await stat(real)).isDirectory() ? real : undefined
  } catch {
    return undefined
  }
}
