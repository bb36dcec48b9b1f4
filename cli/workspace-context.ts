import { existsSync, realpathSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { CliFault, exitCodes } from './fault.js'
import type { Io } from './io.js'
import { pick } from './show/cells.js'
import type { Output } from './show/output.js'

/** The requests to the daemon used here. */
interface Asks {
  request(method: string, path: string, body?: unknown): Promise<unknown>
}

/** Context of a command that opens a workspace. */
interface Place {
  readonly io: Pick<Io, 'env' | 'cwd' | 'terminal'>
  readonly client: Asks
  readonly out: Output
}

/** A workspace reference: an ID or a name unchanged, a path made absolute, because the daemon has another working directory. */
export function workspaceReference(reference: string, cwd: string): string {
  return /^\.{1,2}$|\//.test(reference) ? resolve(cwd, reference) : reference
}

/**
 * The default workspace of a command: `SVC_WORKSPACE`, else the workspace of the session in which the command runs, else the
 * nearest workspace that encloses the current directory. Undefined if there is none.
 */
export async function currentWorkspace(
  { env, cwd }: Pick<Io, 'env' | 'cwd'>,
  client: Asks,
): Promise<string | undefined> {
  if (env.SVC_WORKSPACE) return workspaceReference(env.SVC_WORKSPACE, cwd)
  return (await ofSession(env.SVC_SESSION_ID, client)) ?? (await nearest(cwd, client))
}

/**
 * The ID of a workspace, for requests that accept no name or path. In a session its own workspace comes first: an agent may see no
 * other. The list includes workspaces whose folder is gone; the daemon checks other references.
 */
export async function workspaceId(reference: string, client: Asks, env: Io['env']): Promise<string> {
  if (/^ws_[0-9a-f]{16}$/.test(reference)) return reference
  const own = await ofSession(env.SVC_SESSION_ID, client)
  if (own !== undefined) {
    const about = pick(await client.request('GET', `/api/workspaces/${own}`), 'workspace')
    if (pick(about, 'name') === reference || isWithin(reference, textAt(about, 'root_dir'))) return own
  }
  const rows = pick(await client.request('GET', '/api/workspaces'), 'workspaces')
  const found = (Array.isArray(rows) ? rows : []).filter(row =>
    ['id', 'name', 'root_dir'].some(member => pick(row, member) === reference),
  )
  const [id] = found.map(row => textAt(row, 'id'))
  if (found.length === 1 && id !== undefined) return id
  const about = await client.request('GET', `/api/workspaces/${encodeURIComponent(reference)}`)
  return String(pick(about, 'workspace.id'))
}

/** Whether a folder is in the workspace at `root`, by its real path, and in none that was registered inside it. */
function isWithin(reference: string, root: string | undefined): boolean {
  if (reference === root) return true
  if (root === undefined || !isAbsolute(reference) || !existsSync(reference)) return false
  for (let folder = realpathSync(reference); folder !== root; folder = dirname(folder))
    if (folder === dirname(folder) || existsSync(join(folder, '.svc', 'workspace.toml'))) return false
  return true
}

async function ofSession(id: string | undefined, client: Asks): Promise<string | undefined> {
  if (!id) return undefined
  try {
    return textAt(await client.request('GET', `/api/sessions/${encodeURIComponent(id)}/owner`), 'workspace_id')
  } catch (error) {
    // A deleted session has no workspace, so the current directory decides.
    if (error instanceof CliFault && error.code.endsWith('not_found')) return undefined
    throw error
  }
}

/** The daemon decides which workspace a folder belongs to, because it knows the homes that no workspace may include. */
async function nearest(cwd: string, client: Asks): Promise<string | undefined> {
  const rows = pick(await client.request('GET', `/api/workspaces?path=${encodeURIComponent(cwd)}`), 'workspaces')
  return Array.isArray(rows) ? textAt(rows[0], 'id') : undefined
}

/**
 * The workspace of a command that needs one: as {@link currentWorkspace}, else the project root around the current directory, which
 * is registered with a note. For a folder in which an agent rarely should work, the person is asked first; without a terminal the
 * command ends with exit code 2.
 * @param option a reference instead of the current directory
 */
export async function openWorkspace(world: Place, option?: string): Promise<string> {
  const { io, client, out } = world
  const { env, cwd } = io
  const named = option ?? (env.SVC_WORKSPACE || undefined)
  const reference = named === undefined ? await ofSession(env.SVC_SESSION_ID, client) : workspaceReference(named, cwd)
  if (reference !== undefined && !isAbsolute(reference)) return reference
  const folder = reference ?? cwd
  try {
    const reply = await client.request('POST', '/api/workspaces/place', { path: folder })
    if (pick(reply, 'registered') === true) tell(pick(reply, 'workspace'), out)
    return String(pick(reply, 'workspace.id'))
  } catch (error) {
    if (!(error instanceof CliFault) || error.code !== 'workspace_too_wide') throw error
    return registerWide(error, folder, world)
  }
}

async function registerWide(fault: CliFault, folder: string, { io, client, out }: Place): Promise<string> {
  const terminal = out.json || out.quiet ? undefined : io.terminal
  if (!terminal) throw new CliFault(fault.code, fault.message, { ...fault.more, exit: exitCodes.usage })
  const { confirm } = await import('../plugins/work/session-commands/typed.js')
  out.line(fault.message)
  if (!(await confirm({ terminal, out }, 'Register it as a workspace?', false)))
    throw new CliFault('workspace_refused', `${folder} was not registered as a workspace`, {
      next: 'cd <folder of a project>',
    })
  const reply = await client.request('POST', '/api/workspaces', { root_dir: folder })
  tell(pick(reply, 'workspace'), out)
  return String(pick(reply, 'workspace.id'))
}

const tell = (workspace: unknown, out: Output) =>
  out.note(
    `registered ${textAt(workspace, 'root_dir')} as workspace ${textAt(workspace, 'name')}; its id is in .svc/workspace.toml`,
  )

function textAt(body: unknown, path: string): string | undefined {
  const value = pick(body, path)
  return typeof value === 'string' ? value : undefined
}
