import { stat } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import { messageOf } from '../../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import { findExecutable, searchPath } from '../../../agents/providers/api.js'
import { finding } from '../../../desk/daemon/api.js'
import { idPart } from '../client/tools.js'
import type { Server } from '../sources/declaration.js'
import { folderOf } from '../sources/foreign.js'
import type { Problem } from '../sources/sources.js'

/** Items per report. */
const NAMED = 50

/** Problems of one place: the home or a workspace. */
export interface PlaceTrouble {
  readonly workspaceId?: string
  readonly problems: readonly Problem[]
  readonly failed: readonly { readonly name: string; readonly why: string }[]
  readonly collisions: readonly { readonly name: string; readonly why: string }[]
  readonly programless: readonly { readonly name: string; readonly why: string }[]
}

/**
 * Why a server's program cannot be started; undefined if it exists, or if the sandbox has its own files. The check only
 * looks up files, since a report must not run programs.
 * @param env of the daemon
 * @param root folder that the server is started in
 */
export async function programTrouble(
  { name, declaration }: Server,
  env: Readonly<Record<string, string | undefined>>,
  root: string,
): Promise<string | undefined> {
  const { command: program, args = [], env: own, secret_env: secret, sandbox } = declaration
  if (program === undefined || sandbox !== undefined || secret?.PATH !== undefined) return undefined
  const within = folderOf(program, args) ?? { folder: root, program }
  const cannot = `the MCP server ${shown(name, 64)} cannot start`
  if (!(await isFolder(within.folder))) return `${cannot}: its folder ${shown(within.folder, 200)} is not there`
  const PATH = own?.PATH ?? env.PATH
  // Other forms are references, which are resolved when the server starts.
  if (PATH !== undefined && !PATH.startsWith('/')) return undefined
  const isPath = within.program.includes('/')
  const wanted = isPath ? path.resolve(within.folder, within.program) : within.program
  if ((await findExecutable(wanted, searchPath({ PATH }))) !== undefined) return undefined
  const is = isPath ? 'is not an executable file' : 'is not found in PATH'
  return `${cannot}: its program ${shown(within.program, 200)} ${is}`
}

export const isFolder = (folder: string) =>
  stat(folder).then(
    info => info.isDirectory(),
    () => false,
  )

/** Servers of one place whose tools map to the same ids, without the first of each. */
export function collisions(servers: readonly { readonly name: string }[]): PlaceTrouble['collisions'] {
  const first = new Map<string, string>()
  return servers.flatMap(({ name }) => {
    const part = idPart(name)
    const other = first.get(part)
    if (other === undefined) {
      first.set(part, name)
      return []
    }
    const why = `the MCP servers ${shown(other, 64)} and ${shown(name, 64)} have tools with the same ids (mcp__${part}__…), which cannot be called. Rename one of them`
    return [{ name, why }]
  })
}

/** The doctor's items for unreadable server files, servers that failed last time, name collisions and missing programs. */
export function serverItems(places: readonly PlaceTrouble[]): DiagnosticItem[] {
  const items = places.flatMap(({ workspaceId, problems, failed, collisions, programless }) => [
    ...fileItems(problems, workspaceId),
    ...collisions.map(({ name, why }) =>
      finding({
        id: idOf('name', name, workspaceId),
        code: 'mcp_server_name_taken',
        category: 'mcp',
        severity: 'warning',
        title: `MCP server ${shown(name, 64)} hides tools of another server`,
        message: why,
        suggested_command: listOf(workspaceId),
      }),
    ),
    ...failed.map(server => failedItem(server, workspaceId)),
    ...programless.map(({ name, why }) =>
      finding({
        id: idOf('server', name, workspaceId),
        code: 'mcp_server_program_missing',
        category: 'mcp',
        severity: 'warning',
        title: `MCP server ${shown(name, 64)} cannot start`,
        message: `${why}. Install it or change the server`,
        suggested_command: probeOf(name, workspaceId),
      }),
    ),
  ])
  return items.slice(0, NAMED)
}

/** One item per source, which may consist of several files. */
function fileItems(problems: readonly Problem[], workspaceId: string | undefined): DiagnosticItem[] {
  return [...new Set(problems.map(({ where }) => where))].map(where => {
    const of = problems.filter(problem => problem.where === where)
    const isMinor = of.every(problem => problem.isMinor)
    const effect = isMinor
      ? 'sessions start without the servers that it declares'
      : workspaceId === undefined
        ? 'no session starts until it is fixed'
        : `no session of the workspace ${workspaceId} starts until it is fixed`
    return finding({
      id: idOf('file', where, workspaceId),
      code: 'mcp_file_invalid',
      category: 'mcp',
      severity: isMinor ? 'warning' : 'error',
      title: `MCP servers of ${where} cannot be read`,
      message: `${of.map(({ error }) => messageOf(error)).join('; ')}; ${effect}`,
      suggested_command: listOf(workspaceId),
    })
  })
}

export function failedItem(
  { name, why }: PlaceTrouble['failed'][number],
  workspaceId: string | undefined,
): DiagnosticItem {
  return finding({
    id: idOf('server', name, workspaceId),
    code: 'mcp_server_failed',
    category: 'mcp',
    severity: 'warning',
    title: `MCP server ${shown(name, 64)} does not work`,
    message: `the MCP server ${shown(name, 64)} failed when it was last tried: ${why}`,
    suggested_command: probeOf(name, workspaceId),
  })
}

const idOf = (...parts: readonly (string | undefined)[]) => ['mcp', ...parts.filter(part => part)].join(':')
const listOf = (workspaceId: string | undefined) =>
  workspaceId === undefined ? command('mcp list') : command('mcp list', '--workspace', workspaceId)
const probeOf = (name: string, workspaceId: string | undefined) =>
  workspaceId === undefined
    ? command('mcp show', name, '--probe')
    : command('mcp show', name, '--probe', '--workspace', workspaceId)
