import fs from 'node:fs'
import { resolve, sep } from 'node:path'
import { CliFault } from './fault.js'
import type { Io } from './io.js'
import { pick } from './show/cells.js'

/** What is asked of the daemon here. */
interface Asks {
  request(method: string, path: string): Promise<unknown>
}

/** A workspace as it was given: an id or a name as it stands, a path made absolute, for the daemon has another directory. */
export function workspaceReference(given: string, cwd: string): string {
  return /^\.{1,2}$|\//.test(given) ? resolve(cwd, given) : given
}

/**
 * The workspace of a command that names none: `SVC_WORKSPACE`, else the workspace of the session in which the command
 * runs, else the nearest workspace that encloses the current directory. Undefined if there is none.
 */
export async function currentWorkspace(
  { env, cwd }: Pick<Io, 'env' | 'cwd'>,
  client: Asks,
): Promise<string | undefined> {
  if (env.SVC_WORKSPACE) return workspaceReference(env.SVC_WORKSPACE, cwd)
  return (await ofSession(env.SVC_SESSION_ID, client)) ?? (await nearest(cwd, client))
}

async function ofSession(id: string | undefined, client: Asks): Promise<string | undefined> {
  if (!id) return undefined
  try {
    return textAt(await client.request('GET', `/api/sessions/${encodeURIComponent(id)}/owner`), 'workspace_id')
  } catch (error) {
    // One that is gone says nothing; the directory does.
    if (error instanceof CliFault && error.code.endsWith('not_found')) return undefined
    throw error
  }
}

async function nearest(cwd: string, client: Asks): Promise<string | undefined> {
  const here = `${await fs.promises.realpath(cwd).catch(() => cwd)}${sep}`
  const rows = pick(await client.request('GET', '/api/workspaces'), 'workspaces')
  const around = (Array.isArray(rows) ? rows : []).flatMap(row => {
    const [id, root] = [textAt(row, 'id'), textAt(row, 'root_dir')]
    const encloses = root !== undefined && here.startsWith(root.endsWith(sep) ? root : root + sep)
    return id !== undefined && encloses ? [{ id, root }] : []
  })
  return around.sort((a, b) => b.root.length - a.root.length)[0]?.id
}

function textAt(body: unknown, path: string): string | undefined {
  const value = pick(body, path)
  return typeof value === 'string' ? value : undefined
}
