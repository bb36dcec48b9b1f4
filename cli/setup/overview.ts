import { daemonHolder } from '../address.js'
import type { DaemonClient } from '../client.js'
import { pick } from '../show/cells.js'
import type { Output } from '../show/output.js'

/** Time limit, so that an overview does not wait for an unresponsive daemon. */
const withinMs = 3000

type Row = readonly [command: string, what: string]

const run: Row = ['svc run "<prompt>"', 'run an agent in this folder']
const help: Row = ['svc --help', 'list every command']

/** Bare `svc`: the state of the daemon, and the most likely next commands. */
export async function showOverview(home: string, client: DaemonClient, out: Output, version: string): Promise<void> {
  const pid = (await daemonHolder(home))?.pid
  const status = pid === undefined ? undefined : await statusOf(client)
  const count = (path: string) => Number(pick(status, path) ?? 0)
  const [active, waiting] = [count('sessions.active'), count('sessions.by_badge.waiting')]
  if (out.json) {
    out.value({ version, home, running: pid !== undefined, ...(pid !== undefined && { pid, active, waiting }) })
    return
  }
  out.line(`svc ${version}: runs durable agent work on this machine`)
  out.line('')
  out.line(stateText(pid, status !== undefined, active, waiting))
  out.line('')
  const next = nextOf(pid !== undefined, status !== undefined, active, waiting)
  const width = Math.max(...next.map(([command]) => command.length))
  for (const [command, what] of next) {
    const row = `  ${command.padEnd(width)}   ${what}`
    out.line(row.length < out.width ? row : `  ${command}`)
  }
}

function stateText(pid: number | undefined, answers: boolean, active: number, waiting: number): string {
  if (pid === undefined) return 'The daemon is not running. svc run starts it.'
  if (!answers) return `The daemon (pid ${pid}) runs but does not answer.`
  const waits = waiting === 0 ? '' : `, ${waiting} ${waiting === 1 ? 'waits' : 'wait'} for your answer`
  return `The daemon is running (pid ${pid}): ${active} active ${active === 1 ? 'session' : 'sessions'}${waits}.`
}

function nextOf(isRunning: boolean, answers: boolean, active: number, waiting: number): readonly Row[] {
  if (!isRunning) return [run, ['svc init', 'find agents and write config.json'], help]
  if (!answers) return [['svc logs', 'show what it logged last'], ['svc daemon stop', 'stop it'], help]
  if (waiting > 0) return [['svc inbox', 'show questions that wait for you'], run, help]
  return [run, active > 0 ? ['svc session list', 'show sessions'] : ['svc doctor', 'check the installation'], help]
}

async function statusOf(client: DaemonClient): Promise<unknown> {
  try {
    return await client.request('GET', '/api/status', undefined, { signal: AbortSignal.timeout(withinMs) })
  } catch {
    return undefined
  }
}
