import { columnsOf } from '../../../kernel/kit/annotations/show.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import type { Clarification, InboxQuestion, InboxReply, InteractionReply } from '../../../schemas/sessions.js'
import type { Decision } from '../acp/api.js'
import { showQuestion, verdictText } from './approve-command.js'
import { oneLine } from './one-line.js'
import type { TaskContext } from './task-context.js'
import { typedLine } from './typed.js'
import { answerOf } from './whole-commands.js'

const COLUMNS = columnsOf<InboxQuestion & { readonly number: number }>()([
  { of: 'number', header: 'No' },
  { of: 'session_id', header: 'Session' },
  { of: 'agent_name', header: 'Agent' },
  'kind',
  { of: 'created_at~ago', header: 'Asked' },
  'expires_at~ago',
  { of: 'title', header: 'Asks for', below: true },
  { of: 'command', below: true },
  { of: 'outside~list', header: 'Outside the workspace', below: true },
  { of: 'changes~list', below: true },
  { of: 'show', below: true },
  { of: 'answer', below: true },
  { of: 'workspace_path', header: 'Workspace', below: true },
])

const DECISIONS: Readonly<Record<string, Decision>> = {
  y: 'allow-once',
  a: 'allow-always',
  n: 'reject-once',
  v: 'reject-always',
}

/**
 * `svc inbox`: lists the items that wait for a person, numbered; `svc inbox <number>` shows one, and asks for an answer at a
 * terminal.
 */
export async function runInbox(context: TaskContext): Promise<void> {
  const { args, options, client, out, watch, fault } = context
  const ask = async () => (await client.request('GET', '/api/inbox')) as InboxReply
  if (args.number === undefined) {
    const show = (reply: InboxReply, to: TaskContext['out']) => {
      if (to.json) return to.value(reply)
      const rows = reply.items.map((item, at) => ({ ...item, id: goesBy(item), number: at + 1 }))
      to.table(rows, COLUMNS, 'nothing waits for you')
    }
    if (options.watch === true && watch) return watch(ask, (reply, to) => show(reply as InboxReply, to))
    const reply = await ask()
    show(reply, out)
    if (!out.json && reply.items.length > 0) out.line(out.color('dim', 'to answer one: svc inbox <number>'))
    return
  }
  const { items } = await ask()
  const item = /^\d+$/.test(args.number) ? items[Number(args.number) - 1] : undefined
  if (!item) {
    const known = items.length === 0 ? 'nothing waits for you' : `the numbers are 1 to ${items.length}`
    return fault('inbox_item_not_found', `nothing has the number ${oneLine(args.number)}: ${known}`, command('inbox'))
  }
  if (out.json) return out.value({ item })
  if (!('interaction_id' in item)) {
    out.line(out.color('bold', oneLine(item.title)))
    if ('show' in item && item.show !== undefined) out.line(`show: ${item.show}`)
    return out.line(`next: ${item.command}`)
  }
  const base = `/api/workspaces/${encodeURIComponent(item.workspace_id)}/sessions/${encodeURIComponent(item.session_id)}`
  out.line(out.color('dim', `${oneLine(item.agent_name)} in ${oneLine(item.workspace_path)}, ${item.session_id}`))
  if (item.kind === 'question') return answerWords(context, item, base)
  if (item.show !== undefined) return answerPermission(context, item, base)
  out.line(out.color('bold', oneLine(item.title)))
  out.line(`answer: ${item.answer}`)
}

/** The ID of an item. */
function goesBy(item: InboxReply['items'][number]): string {
  if ('item_id' in item) return item.item_id
  if ('suggestion_id' in item) return item.suggestion_id
  return 'task_id' in item ? item.task_id : item.session_id
}

/** Shows a permission request in full before the answer, because its number may belong to another one by now. */
async function answerPermission(context: TaskContext, item: InboxQuestion, base: string): Promise<void> {
  const { client, out, terminal } = context
  const path = `${base}/interactions/${encodeURIComponent(item.interaction_id)}`
  const { interaction } = (await client.request('GET', path)) as InteractionReply
  showQuestion(context, interaction)
  if (!terminal) return out.line(`answer: ${item.answer}`)
  const line = await typedLine(context, 'Allow? [y] once  [a] this session  [n] no  [v] never, Enter leaves it: ')
  const decision = DECISIONS[line?.trim().toLowerCase() ?? '']
  if (decision === undefined) return out.line(`Not answered. To answer it: ${item.answer}`)
  const body = { request_id: item.interaction_id, turn_id: item.turn_id, decision }
  const { status } = (await client.request('POST', `${base}/approve`, body)) as { status: string }
  out.line(verdictText(context, decision, status))
}

async function answerWords(context: TaskContext, item: InboxQuestion, base: string): Promise<void> {
  const { client, out, terminal } = context
  const reply = (await client.request('GET', `${base}/clarifications`)) as { clarifications: Clarification[] }
  const clarification = reply.clarifications.find(one => one.request_id === item.interaction_id)
  if (!clarification) return out.line('answered already')
  for (const line of clarification.question.split('\n')) out.line(out.color('bold', oneLine(line)))
  for (const [at, choice] of (clarification.choices ?? []).entries()) out.line(`  ${at + 1}  ${oneLine(choice)}`)
  if (!terminal) return out.line(`answer: ${item.answer} <answer>`)
  const line = await typedLine(
    context,
    clarification.choices ? 'Number or text, Enter leaves it: ' : 'Answer, Enter leaves it: ',
  )
  if (line === undefined || line.trim() === '') return out.line(`Not answered. To answer it: ${item.answer}`)
  const path = `${base}/clarifications/${encodeURIComponent(clarification.request_id)}/answer`
  const { text } = (await client.request('POST', path, answerOf(clarification, line))) as { text: string }
  out.line(`answered: ${oneLine(text)}`)
}
