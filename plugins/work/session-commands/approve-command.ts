import { columnsOf } from '../../../kernel/kit/annotations/show.js'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import type { InteractionReply, ListInteractionsReply, PendingInteraction } from '../../../schemas/sessions.js'
import { questionRows, WHOLE } from './question-lines.js'
import { sessionPath } from './session-path.js'
import type { TaskContext } from './task-context.js'
import { confirm } from './typed.js'

/** `svc session approve <id> [--request …] [--always] [--yes]`, `--reject`, and `svc session deny <id>` */
export async function runApprove(context: TaskContext): Promise<void> {
  const { args, options, client, out, fault, path } = context
  const id = String(args.session_id)
  const base = await sessionPath(context)
  const pending = ((await client.request('GET', `${base}/interactions?status=pending`)) as ListInteractionsReply)
    .interactions
  const chosen = options.request === undefined ? pending : pending.filter(one => one.interaction_id === options.request)
  const [first] = chosen
  if (!first) {
    return fault(
      'permission_not_found',
      options.request === undefined
        ? 'nothing waits for permission in this session'
        : `no request ${options.request} waits in this session`,
      command('session events', id),
    )
  }
  const isRejected = options.reject === true || path === 'session deny'
  const question = await wholeOf(context, base, first.interaction_id)
  if (!out.json) showQuestion(context, question)
  if (!isRejected && options.yes !== true) {
    if (!context.terminal) {
      const again = command('session approve', id, '--request', question.interaction_id, '--yes')
      return fault('usage', 'without a terminal, approving needs --yes', again)
    }
    if (!(await confirm(context, 'Allow?', false)))
      return out.line(`Not answered. To reject: ${command('session deny', id)}`)
  }
  const decision = `${isRejected ? 'reject' : 'allow'}-${options.always === true ? 'always' : 'once'}`
  const body = { request_id: question.interaction_id, turn_id: question.turn_id, decision }
  const reply = (await client.request('POST', `${base}/approve`, body)) as { status: string }
  if (out.json) return out.value(reply)
  out.line(verdictText(context, decision, reply.status))
  if (chosen.length > 1) out.line(out.color('dim', `${chosen.length - 1} more wait in this session`))
}

/** `svc session interactions <id> [interaction] [--status …]` */
export async function runInteractions(context: TaskContext): Promise<void> {
  const { args, options, client, out } = context
  const base = await sessionPath(context)
  if (args.interaction_id !== undefined) {
    const interaction = await wholeOf(context, base, args.interaction_id)
    if (out.json) return out.value({ interaction })
    showQuestion(context, interaction)
    const { status, resolution, resolved_by } = interaction
    return out.line(
      out.color('dim', [status, resolution, resolved_by && `by ${resolved_by}`].filter(Boolean).join(', ')),
    )
  }
  const query = options.status === undefined ? '' : `?status=${encodeURIComponent(String(options.status))}`
  const reply = (await client.request('GET', `${base}/interactions${query}`)) as ListInteractionsReply
  if (out.json) return out.value(reply)
  out.table(reply.interactions, COLUMNS, 'this session has asked no question')
  if (reply.interactions.length > 0)
    out.line(
      out.color('dim', `all of one: ${command('session interactions', `${args.session_id}`, placeholder('id'))}`),
    )
}

const COLUMNS = columnsOf<PendingInteraction>()([
  { of: 'interaction_id', header: 'ID' },
  'status',
  { of: 'resolution', header: 'Answer' },
  { of: 'resolved_by', header: 'By' },
  { of: 'created_at~ago', header: 'Asked' },
  { of: 'title', header: 'Asks for', below: true },
])

async function wholeOf({ client }: TaskContext, base: string, id: string): Promise<PendingInteraction> {
  const path = `${base}/interactions/${encodeURIComponent(id)}`
  return ((await client.request('GET', path)) as InteractionReply).interaction
}

/** The result of an answer, for people. */
export function verdictText({ out }: TaskContext, decision: string, status: string): string {
  return status === 'allowed' ? out.color('green', `${decision}: allowed`) : out.color('yellow', status)
}

/** Shows a question in full. */
export function showQuestion({ out }: TaskContext, interaction: PendingInteraction): void {
  const { head, rows } = questionRows({ ...interaction, kind: interaction.tool_kind }, WHOLE)
  out.line(out.color('bold', head))
  for (const { text, color } of rows) out.line(color ? out.color(color, text) : text)
}
