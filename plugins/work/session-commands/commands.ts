import { command } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { Session, SessionEvent, SessionTurn, TranscriptEntry } from '../../../schemas/sessions.js'
import { attachedFiles, sendFiles } from './attached-files.js'
import { eventOf } from './conversation.js'
import { CODE, EventLines } from './event-lines.js'
import { sandboxText } from './sandbox-text.js'
import { sessionPath } from './session-path.js'
import type { TaskContext } from './task-context.js'
import { transcriptLines } from './transcript-lines.js'

export { runApprove, runInteractions } from './approve-command.js'
export { runInbox } from './inbox-command.js'
export { runRun } from './run-command.js'
export { runAttach, runPrompt, runWait } from './talk-commands.js'
export { runClarify, runFork, runRecap, runRewind, runRuntime } from './whole-commands.js'

/** `svc session new` */
export async function runNew(context: TaskContext): Promise<void> {
  const { options, client, out, fault } = context
  const { agent, name, model, prompt, permissions, sandbox } = options
  const files = await attachedFiles(context)
  if (files.length > 0 && prompt === undefined) {
    return fault(
      'usage',
      '--attach needs --prompt: a file goes along with a prompt',
      'svc session new --prompt … --attach …',
    )
  }
  const body = {
    workspace: options.workspace,
    ...(agent !== undefined && { agent_name: agent }),
    ...(name !== undefined && { name }),
    ...(model !== undefined && { model }),
    ...(permissions !== undefined && { permissions }),
    ...(sandbox !== undefined && { sandbox }),
    // Files need a stored session, so the prompt that carries them is sent in a later request.
    ...(prompt !== undefined && files.length === 0 && { prompt }),
  }
  const reply = (await client.request('POST', '/api/sessions', body)) as { session: Session }
  if (files.length > 0) {
    const { workspace_id, id } = reply.session
    const base = `/api/workspaces/${encodeURIComponent(String(workspace_id))}/sessions/${id}`
    const attachments = await sendFiles(context, base, files)
    await client.request('POST', `${base}/prompt`, { text: prompt, attachments })
  }
  if (out.json) return out.value(reply)
  const { id, agent_name, permissions: mode } = reply.session
  out.id(id)
  out.line(`started ${id} (${agent_name}, permissions ${mode}, ${sandboxText(reply.session)})`)
  const next = prompt === undefined ? command('session prompt', id, '…') : command('session events', id, '--follow')
  out.line(out.color('dim', `next: ${next}`))
}

/** `svc session events <id> [--follow]` */
export async function runEvents(context: TaskContext): Promise<void> {
  const { args, options, client, out } = context
  const base = await sessionPath(context)
  const lines = new EventLines(String(args.session_id), context, 'elsewhere', true)
  if (options.follow === true) {
    const limit = options.limit === undefined ? '' : `&limit=${options.limit}`
    for await (const frame of client.stream(`${base}/stream?frames=raw${limit}`)) {
      const event = eventOf(frame, context)
      if (!event || !wanted(event, options)) continue
      if (out.json) out.value(event)
      else lines.show(event)
    }
    lines.end()
    return
  }
  const query = queryOf({ limit: options.limit, type: options.type, turn_id: options.turn })
  const reply = (await client.request('GET', `${base}/events${query}`)) as { events: SessionEvent[] }
  if (out.json) return inRows(context, reply, reply.events)
  for (const event of reply.events) lines.show(event)
  lines.end()
}

/** `svc session history <id>` */
export async function runHistory(context: TaskContext): Promise<void> {
  const { args, options, client, out } = context
  const query = queryOf({ limit: options.limit })
  const reply = (await client.request('GET', `${await sessionPath(context)}/history${query}`)) as {
    history: SessionTurn[]
  }
  if (out.json) return inRows(context, reply, reply.history)
  for (const turn of reply.history) {
    const [first] = turn.events
    if (turn.turn_id !== '' && first)
      out.line(out.color('bold', `turn ${turn.turn_id}, ${new Date(first.timestamp).toLocaleDateString('sv')}`))
    const lines = new EventLines(String(args.session_id), context, 'elsewhere', true)
    for (const event of turn.events) lines.show(event)
    lines.end()
  }
  if (reply.history.length === 0) out.line('nothing happened in this session yet')
}

/** `svc session transcript <id>` */
export async function runTranscript(context: TaskContext): Promise<void> {
  const { options, client, out } = context
  const query = queryOf({ limit: options.limit })
  const reply = (await client.request('GET', `${await sessionPath(context)}/transcript${query}`)) as {
    entries: TranscriptEntry[]
    has_older: boolean
  }
  if (out.json) return inRows(context, reply, reply.entries)
  if (reply.has_older) out.line(out.color('dim', '(older messages are left out; --limit shows more)'))
  for (const { message } of reply.entries) {
    const lines = transcriptLines(message)
    if (lines.length === 0) continue
    out.line(out.color('bold', message.role))
    for (const { text, failed } of lines) {
      const rows = out.wrap && !CODE.test(text) ? out.wrap(text, (out.width ?? Number.POSITIVE_INFINITY) - 2) : [text]
      for (const row of rows) out.line(`  ${failed ? out.color('red', row) : row}`)
    }
  }
}

/** `svc session resume <id>` */
export async function runResume(context: CommandContext): Promise<void> {
  const { args, client, out } = context
  const reply = await client.request('POST', `${await sessionPath(context)}/prompt`, {})
  if (out.json) out.value(reply)
  else out.line(`resumed ${args.session_id}`)
}

/** Prints a reply for programs: whole, or one line per row in `jsonl` mode. */
function inRows({ out }: TaskContext, reply: unknown, rows: readonly unknown[]): void {
  if (out.mode === 'jsonl') for (const row of rows) out.value(row)
  else out.value(reply)
}

function wanted(event: SessionEvent, options: CommandContext['options']): boolean {
  return (
    (options.type === undefined || event.type === options.type) &&
    (options.turn === undefined || event.turn_id === options.turn)
  )
}

function queryOf(values: Readonly<Record<string, unknown>>): string {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined)
  const text = new URLSearchParams(entries.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return text === '' ? '' : `?${text}`
}
