import { accessSync, constants, existsSync } from 'node:fs'
import { join } from 'node:path'
import { builtIn, catalog } from '../../plugins/agents/providers/catalog.js'
import { findExecutable } from '../../plugins/agents/providers/detect.js'
import { searchPath } from '../../plugins/agents/providers/environment.js'
import { serviceItems } from '../../plugins/desk/daemon/service-check.js'
import type { RouteCommand } from '../commands/command-data.js'
import { CliFault } from '../fault.js'
import type { Io } from '../io.js'
import { ownerOf } from '../service/facts.js'
import type { Output } from '../show/output.js'
import { readSettings } from './settings-file.js'

interface Item {
  readonly id: string
  readonly severity: 'info' | 'warning' | 'error'
  readonly code: string
  readonly message: string
  readonly suggested_command?: string | undefined
}

/** The order of the daemon's report. */
const URGENCY: readonly string[] = ['error', 'warning', 'info']

interface World {
  readonly io: Io
  readonly out: Output
  readonly home: string
}

/** `svc doctor` without a daemon: the checks that need none, in the form of the daemon's report. */
export async function doctorOffline(unreached: CliFault, entry: RouteCommand, { io, out, home }: World): Promise<void> {
  const items = [
    daemonItem(unreached, home),
    homeItem(home),
    await configItem(home),
    await agentsItem(io),
    ...serviceItems(ownerOf(io.env)),
  ].toSorted((a, b) => URGENCY.indexOf(a.severity) - URGENCY.indexOf(b.severity))
  if (out.json) out.value({ items })
  else if (entry.view && 'columns' in entry.view) out.table(items, entry.view.columns)
}

function daemonItem({ code, message, more }: CliFault, home: string): Item {
  const log = existsSync(join(home, 'logs', 'svc.log')) ? '; see its log: svc logs' : ''
  // The next step has a column of its own.
  const [what = ''] = message.split('; start one: ')
  return { id: 'daemon', severity: 'error', code, message: `${what}${log}`, suggested_command: more.next }
}

function homeItem(home: string): Item {
  const item = { id: 'home.path', code: 'home_ok', severity: 'info' } as const
  if (!existsSync(home)) return { ...item, message: `${home} does not exist yet; the first start creates it` }
  try {
    accessSync(home, constants.R_OK | constants.W_OK | constants.X_OK)
    return { ...item, message: `${home} can be written` }
  } catch (error) {
    const message =
      (error as NodeJS.ErrnoException).code === 'EROFS'
        ? `${home} is on a read-only file system; mount it writable, or name another home with SVC_HOME`
        : `${home} cannot be written by this user; start svc as its owner, or name another home with SVC_HOME`
    return { ...item, code: 'home_unwritable', severity: 'error', message }
  }
}

async function configItem(home: string): Promise<Item> {
  const item = { id: 'config', code: 'config_ok', severity: 'info' } as const
  try {
    await readSettings(home)
    return { ...item, message: 'config.json can be read' }
  } catch (error) {
    const code = error instanceof CliFault ? error.code : 'config_unreadable'
    return { ...item, code, severity: 'error', message: (error as Error).message }
  }
}

async function agentsItem({ env }: Io): Promise<Item> {
  const item = { id: 'runtime.providers', code: 'provider_ready', severity: 'info' } as const
  const folders = searchPath(env)
  const programs = catalog.filter(provider => provider !== builtIn)
  const there = await Promise.all(programs.map(({ argv: [command = ''] }) => findExecutable(command, folders)))
  const names = programs.filter((_, i) => there[i] !== undefined).map(({ displayName }) => displayName)
  if (names.length > 0) return { ...item, message: `installed: ${names.join(', ')}` }
  return {
    ...item,
    code: 'provider_cli_missing',
    severity: 'warning',
    message: 'no agent program is on the PATH; the built-in agent works: svc run --agent report',
    suggested_command: programs.find(({ install }) => install)?.install,
  }
}
