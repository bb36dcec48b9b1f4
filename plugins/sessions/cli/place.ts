import { realpath } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import path from 'node:path'
import { contains } from '../requests/paths.js'
import type { TaskContext } from './task-context.js'
import { confirm, fitted } from './typed.js'

/**
 * The workspace that a new session is to have: what was given, or the one around this folder, else this folder, which
 * becomes one. A person is told so, and asked where hardly anybody means the whole folder.
 */
export async function openPlace(context: TaskContext): Promise<Readonly<Record<string, string>>> {
  const { options, client, out, cwd, fault } = context
  const { workspace } = options
  const isPath = workspace === undefined || /^(?:[.~/])/.test(String(workspace))
  if (!isPath) return { workspace: String(workspace) }
  const folder = path.resolve(cwd, String(workspace ?? '.'))
  const { workspaces } = (await client.request('GET', '/api/workspaces')) as { workspaces: { root_dir: string }[] }
  const real = await realpath(folder).catch(() => folder)
  if (workspaces.some(({ root_dir }) => contains(root_dir, real))) return { workspace_path: folder }
  const broad = broadFolder(real)
  if (broad !== undefined && context.terminal) {
    out.line(`${real} is ${broad}. The agent would work in all of it.`)
    if (!(await confirm(context, 'Register it as a workspace?', false))) {
      return fault('workspace_refused', `${real} was not registered as a workspace`, 'cd <folder of a project>')
    }
  }
  const body = { path: folder }
  const reply = (await client.request('POST', '/api/workspaces/resolve', body)) as { workspace: { name: string } }
  const told = `registered ${real} as workspace ${reply.workspace.name}`
  if (!out.json) for (const line of fitted(told, context)) out.line(out.color('dim', line))
  return { workspace_path: folder }
}

/** What a folder is in which hardly anybody wants an agent at work; undefined for any other. */
function broadFolder(folder: string): string | undefined {
  const home = homedir()
  if (folder === path.parse(folder).root) return 'the root of the file system'
  if (folder === home) return 'your home'
  if (path.dirname(home) === folder) return 'the folder of all homes'
  const temporary = [tmpdir(), '/tmp', '/var/tmp', '/private/tmp']
  return temporary.includes(folder) ? 'the folder for temporary files' : undefined
}
