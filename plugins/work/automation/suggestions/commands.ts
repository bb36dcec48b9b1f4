import { columnsOf } from '../../../../kernel/kit/annotations/index.js'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../../kernel/plugin.js'
import type {
  AcceptSuggestionReply,
  ListSuggestionsReply,
  Suggestion,
  SuggestionReply,
} from '../../../../schemas/automation.js'

const columns = columnsOf<Suggestion>()([
  'id',
  'status',
  'payload.name',
  'source',
  'created_at~ago',
  'trigger.event',
  { of: 'payload.schedule_text', header: 'Schedule', below: true },
  { of: 'payload.prompt', below: true },
])

const urlOf = ({ options, fault }: CommandContext): string => {
  const { workspace } = options
  if (typeof workspace !== 'string')
    return fault('usage', 'suggestions belong to a workspace: give --workspace', command('workspace list'))
  return `/api/workspaces/${encodeURIComponent(workspace)}/automation/suggestions`
}

/** `svc automation suggestions list` */
export async function runListSuggestions(context: CommandContext): Promise<void> {
  const { options, client, out } = context
  const query = options.status === undefined ? '' : `?status=${encodeURIComponent(String(options.status))}`
  const reply = (await client.request('GET', `${urlOf(context)}${query}`)) as ListSuggestionsReply
  if (out.json) return out.value(reply)
  for (const { id } of reply.suggestions) out.id(id)
  const rows = reply.suggestions.map(one => ({ ...one, payload: { ...one.payload, schedule_text: whenOf(one) } }))
  out.table(rows, columns, 'No suggestions.')
}

/** `cron 0 9 * * 1-5`, `every 1h`, `at 2030-01-31T09:00:00Z`; undefined for a trigger. */
function whenOf({ payload: { schedule } }: ListSuggestionsReply['suggestions'][number]): string | undefined {
  return schedule
    ? [schedule.mode, schedule.expr, schedule.interval, schedule.time].filter(Boolean).join(' ')
    : undefined
}

/** `svc automation suggestions propose <json>`: used by agents from inside a session. */
export async function runPropose(context: CommandContext): Promise<void> {
  const { args, client, out, fault } = context
  let body: unknown
  try {
    body = JSON.parse(args.json ?? '')
  } catch {
    return fault('usage', 'the suggestion is not valid JSON: expected {"job": {…}} or {"trigger": {…}}')
  }
  const reply = (await client.request('POST', urlOf(context), body)) as SuggestionReply
  if (out.json) return out.value(reply)
  const { id, payload, status } = reply.suggestion
  out.id(id)
  out.line(`suggested ${payload.name}: ${id} (${status})`)
  if (status === 'pending') out.line(`next: ${command('automation suggestions accept', id)} (or dismiss ${id})`)
}

/** `svc automation suggestions accept <id>` */
export async function runAccept(context: CommandContext): Promise<void> {
  const { args, client, out } = context
  const url = `${urlOf(context)}/${encodeURIComponent(args.id ?? '')}/accept`
  const reply = (await client.request('POST', url)) as AcceptSuggestionReply
  if (out.json) return out.value(reply)
  const { id, name } = reply.trigger ?? reply.job
  out.id(id)
  out.line(`created ${reply.trigger ? 'trigger' : 'job'} ${name}: ${id}`)
}

/** `svc automation suggestions dismiss <id>` */
export async function runDismiss(context: CommandContext): Promise<void> {
  const { args, client, out } = context
  const url = `${urlOf(context)}/${encodeURIComponent(args.id ?? '')}/dismiss`
  const reply = (await client.request('POST', url)) as SuggestionReply
  if (out.json) return out.value(reply)
  out.line(`dismissed ${reply.suggestion.payload.name}`)
}
