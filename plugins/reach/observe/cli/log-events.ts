import { type CommandContext, messageOf } from '../../../../kernel/plugin.js'
import type { LogEvent, LogsMissed, LogsReply } from '../../../../schemas/daemon/logs.js'
import { durationMs } from '../../../../schemas/duration.js'
import { workspaceIdOf } from './words.js'

/** Options with their names in the query. */
const MEMBERS = {
  type: 'type',
  session: 'session_id',
  agent: 'agent_name',
  run: 'run',
  actor: 'actor',
  provider: 'provider',
  outcome: 'outcome',
  component: 'component',
  'after-seq': 'after_seq',
  limit: 'limit',
} as const

/** `svc logs events`: prints the daemon's events, oldest first, and follows with `--follow`. */
export async function runLogEvents(context: CommandContext): Promise<void> {
  const { client, options, out } = context
  const query = queryOf(context)
  if (options.follow === true) {
    if (options['after-seq'] === undefined) query.set('replay', 'true')
    for await (const frame of client.stream(`/api/logs/stream?${query}`)) {
      if (frame.event === 'error') throw new Error(messageOf((frame.data as { error?: unknown }).error))
      showFrame(context, frame.data as LogEvent | LogsMissed)
    }
    return
  }
  const reply = (await client.request('GET', `/api/logs?${query}`)) as LogsReply
  if (out.json) return out.value(reply)
  for (const event of reply.events) out.line(lineOf(context, event))
  if (!reply.complete) out.line('older events were not searched; read from the oldest: svc logs events --after-seq 0')
  else if (reply.events.length === 0) out.line('no such events')
}

function queryOf({ options, cwd, fault }: CommandContext): URLSearchParams {
  const query = new URLSearchParams()
  for (const [option, member] of Object.entries(MEMBERS))
    if (options[option] !== undefined) query.set(member, String(options[option]))
  const { since, errors } = options
  const workspaceId = workspaceIdOf({ options, cwd })
  if (workspaceId !== undefined) query.set('workspace_id', workspaceId)
  if (errors === true) query.set('error_only', 'true')
  if (since !== undefined) {
    const time = timeOf(String(since))
    if (time === undefined)
      return fault('usage', `--since takes a duration or a time, not ${since}`, 'svc logs events --since 1h')
    query.set('since', time)
  }
  return query
}

/** A duration before now stays as it is; a date such as `2030-01-31` is converted for the request. */
function timeOf(text: string): string | undefined {
  if (durationMs(text) !== undefined) return text
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : new Date(at).toISOString()
}

function showFrame(context: CommandContext, data: LogEvent | LogsMissed): void {
  const { out } = context
  if (out.json) out.row?.(data)
  else if ('type' in data) out.line(lineOf(context, data))
  else if (data.reason === 'gap') out.line(`events ${data.from} to ${data.to} are missing: retention has removed them`)
  else out.line('the event log starts again from the beginning')
}

function lineOf({ out }: CommandContext, event: LogEvent): string {
  const at = new Date(event.timestamp)
  const two = (part: number) => String(part).padStart(2, '0')
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
  return [out.color('dim', `${day} ${time}`), event.type, event.agent_name, event.summary].filter(Boolean).join('  ')
}
