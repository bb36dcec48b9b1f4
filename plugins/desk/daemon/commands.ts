import { columnsOf } from '../../../kernel/kit/annotations/show.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { DbVerifyReply } from '../../../schemas/daemon.js'
import { verifyJournals } from '../../platform/journals/api.js'

export { runSize } from './size-command.js'

/**
 * `svc db verify`: a running daemon checks a copy of its database; without one, the files of the home are checked,
 * archives and journals too. Returns the exit code: 1 when something is damaged.
 */
export async function run({ client, out, home, fault }: CommandContext): Promise<number> {
  let running = true
  const reply = (await client.request('GET', '/api/db/verify').catch(async error => {
    if (codeOf(error) !== 'no_daemon') throw error
    running = false
    return verifyStopped(home, fault)
  })) as DbVerifyReply
  if (out.json) out.value(reply)
  else show(reply, running, out)
  return reply.status === 'ok' ? 0 : 1
}

async function verifyStopped(home: string, fault: CommandContext['fault']): Promise<DbVerifyReply> {
  const { verifyHome } = await import('./verify.js')
  try {
    const checked = await verifyHome(home, verifyJournals)
    return {
      status: checked.some(({ problems }) => problems.length > 0) ? 'damaged' : 'ok',
      checked: checked.map(entry => ({ ...entry, problems: [...entry.problems] })),
    }
  } catch (error) {
    const { message, next, hint } = error as Error & { next?: string; hint?: string }
    return fault(codeOf(error) ?? 'internal', message, next ?? hint)
  }
}

function show({ checked }: DbVerifyReply, running: boolean, out: CommandContext['out']): void {
  const damaged = checked.filter(({ problems }) => problems.length > 0)
  const rows = checked.map(item => ({ ...item, state: item.problems.length > 0 ? 'DAMAGED' : 'ok' }))
  out.table(rows, columnsOf<(typeof rows)[number]>()([{ of: 'kind', header: 'What' }, 'name', 'entries', 'state']))
  for (const { name, problems } of damaged) for (const text of problems) out.line(out.color('red', `${name}: ${text}`))
  out.line(`${checked.length} checked, ${damaged.length} damaged`)
  if (running) out.line(out.color('dim', 'log, archives and journals are checked only while the daemon is stopped'))
}

function codeOf(error: unknown): string | undefined {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : undefined
}
