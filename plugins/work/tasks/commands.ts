import type { CommandContext } from '../../../kernel/plugin.js'
import type { InboxReply } from '../../../schemas/tasks.js'

export { runRequestReview, runReviewVerdict } from './reviews/commands.js'

/** Title of each lane, and the command that resolves its tasks. */
const LANES = {
  my_work: ['My work', ''],
  approvals: ['Waiting for approval', '; next: svc task approve <id>'],
  failed_runs: ['Failed runs', '; next: svc task retry <run-id>'],
  blocked: ['Blocked', '; next: svc task inspect <id>'],
  archived: ['Archived', ''],
} as const

/** `svc task inbox`: the tasks that need action from the caller, grouped by reason. */
export async function runInbox({ options, client, out }: CommandContext): Promise<void> {
  const query = new URLSearchParams()
  for (const name of ['lane', 'status', 'priority', 'query', 'limit'] as const)
    if (options[name] !== undefined) query.set(name, String(options[name]))
  if (options.in !== undefined) query.set('workspace', String(options.in))
  if (options.unread === true) query.set('unread', 'true')
  const reply = (await client.request('GET', `/api/observe/tasks/inbox?${query}`)) as InboxReply
  if (out.json) return out.value(reply)
  const { groups, page } = reply.inbox
  if (page.total === 0) return out.line('no tasks in your inbox. Runs that need attention: svc inbox, svc task board')
  for (const { lane, count, unread_count: unread, items = [] } of groups) {
    if (items.length === 0) continue
    const [title, next] = LANES[lane]
    out.line(`${title}: ${count}, ${unread} unread${next}`)
    for (const { task, run, blocking_reason: reason } of items) {
      const what = reason ?? (run?.status === 'failed' ? `${run.id}: ${run.error ?? 'failed'}` : task.status)
      out.line(`  ${task.id}  ${task.title}  ${what}`)
    }
  }
  if (page.has_more) out.line(`${page.total} tasks in total. Show more: svc task inbox --limit 200`)
}
