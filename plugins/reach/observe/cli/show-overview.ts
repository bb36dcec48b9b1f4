import { columnsOf } from '../../../../kernel/kit/annotations/index.js'
import type { CommandContext, CommandOutput } from '../../../../kernel/plugin.js'
import type { AttentionItem, Overview, OverviewReply } from '../../../../schemas/observe.js'
import { bars, grouped, many, workspaceIdOf } from './words.js'

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
/** Weeks begin on Monday. */
const WEEK = [1, 2, 3, 4, 5, 6, 0]
const HOURS = Array.from({ length: 24 }, (_, hour) => hour)

const attentionColumns = columnsOf<AttentionItem>()([
  { of: 'kind', header: 'KIND', words: { needs_input: 'needs input' } },
  { of: 'title', header: 'TITLE' },
  { of: 'occurred_at~ago', header: 'SINCE' },
  { of: 'detail', header: 'DETAIL', below: true },
  { of: 'command', header: 'COMMAND', below: true },
])

/** `svc overview`, also `svc observe overview`. */
export async function runOverview(context: CommandContext): Promise<void> {
  const { options, client, out } = context
  const workspace = workspaceIdOf(context)
  const query = new URLSearchParams({
    ...(workspace === undefined ? {} : { workspace }),
    ...(options['usage-window'] === undefined ? {} : { usage_window: String(options['usage-window']) }),
  })
  const reply = (await client.request('GET', `/api/observe/overview?${query}`)) as OverviewReply
  if (out.json) return out.value(reply)
  showOverview(reply.overview, out)
}

function showOverview(overview: Overview, out: CommandOutput): void {
  const { attention, today, outcomes, system } = overview
  showAttention(attention, out)
  section(out, 'Today')
  const hooks = `${many(system.hook_runs_today, 'hook run')}, ${grouped(system.hook_failures_today)} failed`
  out.line(`  ${many(today.runs_completed, 'run')} completed, ${grouped(today.runs_failed)} failed`)
  out.line(`  ${many(today.tasks_closed, 'task')} closed; ${hooks}`)
  section(out, `Runs in ${many(outcomes.window_days, 'day')}`)
  const { completed, failed, canceled, success_pct: success } = outcomes
  const ended = `${grouped(completed)} completed, ${grouped(failed)} failed, ${grouped(canceled)} canceled`
  out.line(`  ${ended}${completed + failed === 0 ? '' : `; ${success.toFixed(1)} % succeeded`}`)
  const days = outcomes.days.map(day => day.completed + day.failed + day.canceled)
  if (days.some(n => n > 0)) out.line(`  ${outcomes.days[0]?.date} ${bars(days)} ${outcomes.days.at(-1)?.date}`)
  showPulse(overview.pulse, out)
  showUsage(overview.usage, out)
}

function section(out: CommandOutput, title: string): void {
  out.line('')
  out.line(out.color('bold', title))
}

function showAttention({ total, by_kind: kinds, items }: Overview['attention'], out: CommandOutput): void {
  out.line(out.color('bold', total === 0 ? 'Nothing needs attention' : `Needs attention: ${grouped(total)}`))
  if (items.length === 0) return
  const counts = Object.entries(kinds).filter(([, n]) => n > 0)
  out.line(`  ${counts.map(([kind, n]) => `${grouped(n)} ${kind.replace('_', ' ')}`).join(', ')}`)
  out.table(items, attentionColumns)
  if (total > items.length)
    out.line(out.color('dim', `the newest ${items.length} of ${total}; all: svc attention, svc task inbox`))
}

function showPulse(
  { window_days: days, buckets, busiest, longest_session: longest }: Overview['pulse'],
  out: CommandOutput,
): void {
  section(out, `Events by hour in ${many(days, 'day')}`)
  if (!busiest) {
    out.line('  no events')
    return
  }
  const at = new Map(buckets.map(({ weekday, hour, events }) => [weekday * 24 + hour, events]))
  const most = busiest.events
  for (const weekday of WEEK) {
    // All days share one scale: the busiest hour is appended for scaling and cut off again.
    const row = bars([...HOURS.map(hour => at.get(weekday * 24 + hour) ?? 0), most]).slice(0, HOURS.length)
    out.line(`  ${WEEKDAYS[weekday]?.slice(0, 3)} ${row}`.trimEnd())
  }
  out.line('      0     6     12    18')
  const hour = String(busiest.hour).padStart(2, '0')
  out.line(`  busiest: ${WEEKDAYS[busiest.weekday]} ${hour}:00, ${many(most, 'event')}`)
  if (longest) {
    const { session_id: id, agent_name: agent, date, duration_seconds: seconds } = longest
    out.line(`  longest session: ${id} (${agent}), ${spanText(seconds)}, until ${date}`)
  }
}

function spanText(seconds: number): string {
  const minutes = Math.floor(seconds / 60)
  if (minutes < 1) return `${seconds} s`
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

function showUsage(usage: Overview['usage'], out: CommandOutput): void {
  section(out, `Usage in ${many(usage.window_days, 'day')}`)
  const { estimated_cost: cost, cost_currency: currency, cost_status: status } = usage
  const price = cost == null ? 'cost not reported' : `${cost.toFixed(2)} ${currency ?? ''} (${status})`
  out.line(`  ${many(usage.total_tokens, 'token')}, ${price}`)
  if (usage.truncated) out.line(`  usage is kept for ${many(usage.retention_days, 'day')}`)
  const tokens = usage.days.map(({ tokens: n }) => n)
  if (tokens.some(n => n > 0))
    out.line(`  ${usage.days[0]?.date} ${bars(tokens.slice(-45))} ${usage.days.at(-1)?.date}`)
  for (const { agent_name: agent, tokens: n, fraction } of usage.agent_share)
    out.line(`  ${`${Math.round(fraction * 100)} %`.padStart(5)}  ${agent} (${many(n, 'token')} in 30 days)`)
}
