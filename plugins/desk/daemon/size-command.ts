import { columnsOf } from '../../../kernel/kit/annotations/show.js'
import { type CommandContext, type Reads, systemClock } from '../../../kernel/plugin.js'
import type { DbSizeReply } from '../../../schemas/daemon.js'
import { measure } from './size.js'
import { underLock, withCopy } from './verify.js'

const columns = columnsOf<DbSizeReply['items'][number]>()(['name', 'owner', 'kind', 'entries', 'bytes~bytes'])

/**
 * `svc db size`: shows the daemon's measurement; without a daemon, measures the home under its lock. Empty tables are only
 * counted.
 */
export async function runSize({ client, out, home, fault }: CommandContext): Promise<number> {
  const reply = (await client.request('GET', '/api/db/size').catch(error => {
    if (error.code !== 'no_daemon') throw error
    return measureStopped(home).catch(({ code, message, next, hint }) =>
      fault(code ?? 'internal', message, next ?? hint),
    )
  })) as DbSizeReply
  if (out.json) out.value(reply)
  else show(reply, out)
  return 0
}

async function measureStopped(root: string): Promise<DbSizeReply> {
  const measureCopy = (db: Reads) => {
    const owners = db.rows('SELECT DISTINCT owner FROM kernel_migration').map(([owner]) => String(owner))
    return measure({ db, clock: systemClock(), root, owners })
  }
  return underLock(root, () => withCopy(root, measureCopy))
}

function show({ items, complete }: DbSizeReply, out: CommandContext['out']): void {
  const filled = items.filter(({ entries }) => entries > 0)
  out.table(filled, columns)
  const empty = items.filter(({ kind, entries }) => kind === 'table' && entries === 0).length
  if (empty > 0) out.line(out.color('dim', `${empty} tables are empty`))
  if (!complete) out.line(out.color('dim', 'not all files are counted: there are too many'))
}
