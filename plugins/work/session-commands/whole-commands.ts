import { randomBytes } from 'node:crypto'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type {
  AnswerClarificationBody,
  Clarification,
  RecapReply,
  RewindSessionReply,
  Session,
  SessionDetail,
  TranscriptReply,
} from '../../../schemas/sessions.js'
import { oneLine } from './one-line.js'
import { sessionPath } from './session-path.js'

const MAX_LINES = 4

/** `svc session recap <id>` */
export async function runRecap(context: CommandContext): Promise<void> {
  const { options, client, out } = context
  const query = options.limit === undefined ? '' : `?limit=${options.limit}`
  const reply = (await client.request('GET', `${await sessionPath(context)}/recap${query}`)) as RecapReply
  if (out.json) return out.value(reply)
  const { session, active_run: run, recent_messages, recent_markers, pending_inputs, pending_markers } = reply.recap
  out.line(out.color('bold', `${session.name ?? session.id} · ${session.agent_name} · ${session.badge}`))
  if (run) out.line(out.color('dim', `works on run ${run.id} (${run.status}): ${command('task run show', run.id)}`))
  for (const { role, parts } of recent_messages) {
    const text = parts.map(part => part.text ?? '').join(' ')
    const lines = text.split('\n').filter(line => line.trim() !== '')
    for (const line of lines.slice(0, MAX_LINES)) out.line(`${role === 'user' ? '> ' : '  '}${line}`)
    if (lines.length > MAX_LINES) out.line(out.color('dim', `  … ${lines.length - MAX_LINES} more lines`))
  }
  for (const { kind, summary } of recent_markers) out.line(out.color('yellow', `! ${kind}: ${summary}`))
  if (pending_markers > 0) out.line(out.color('yellow', `${pending_markers} wait for your answer: svc inbox`))
  if (pending_inputs > 0) out.line(`${pending_inputs} prompts wait: ${command('session input list', session.id)}`)
}

/** `svc session clarify <id> [answer]`: shows the open questions, or answers the oldest one. */
export async function runClarify(context: CommandContext): Promise<void> {
  const { args, options, client, out, fault } = context
  const id = String(args.session_id)
  const base = await sessionPath(context)
  const reply = (await client.request('GET', `${base}/clarifications`)) as { clarifications: Clarification[] }
  const refusal = options.skip === true ? { skip: true } : options.decline === true ? { decline: true } : undefined
  if (args.answer === undefined && !refusal) {
    if (out.json) return out.value(reply)
    for (const { question, choices = [], request_id, position, total, ...how } of reply.clarifications) {
      const [first = '', ...more] = question.split('\n').map(oneLine)
      out.line(`? ${first} ${out.color('dim', request_id)}`)
      for (const line of more) out.line(`  ${line}`)
      for (const [index, choice] of choices.entries()) out.line(`  ${index + 1}  ${oneLine(choice)}`)
      const notes = [
        position !== undefined && `question ${position} of ${total}`,
        how.type && choices.length === 0 && `a ${how.type}`,
        how.multiple && 'several may be chosen: 1,3',
        how.optional && 'optional: --skip',
      ]
      if (notes.some(Boolean)) out.line(out.color('dim', `  (${notes.filter(Boolean).join('; ')})`))
    }
    if (reply.clarifications.length === 0) out.line('the agent has no open question')
    else
      out.line(
        out.color('dim', `answer with a number or a text: ${command('session clarify', id, placeholder('answer'))}`),
      )
    return
  }
  const clarification = reply.clarifications.find(
    one => options.request === undefined || one.request_id === options.request,
  )
  if (!clarification)
    return fault('clarification_not_found', 'the agent has no open question', command('session recap', id))
  const body = refusal ?? answerOf(clarification, args.answer ?? '')
  const path = `${base}/clarifications/${encodeURIComponent(clarification.request_id)}/answer`
  const result = (await client.request('POST', path, body)) as { text: string }
  if (out.json) out.value(result)
  else out.line(refusal ? Object.keys(refusal).map(word => WORDS[word])[0]! : `answered: ${oneLine(result.text)}`)
}

const WORDS: Readonly<Record<string, string>> = { skip: 'skipped', decline: 'declined' }

/** A number selects a choice, and comma-separated numbers select several; everything else is a text. */
export function answerOf(
  { choices = [], multiple }: Partial<Pick<Clarification, 'choices' | 'multiple'>>,
  answer: string,
): AnswerClarificationBody {
  if (multiple && /^\s*\d+(?:\s*,\s*\d+)*\s*$/.test(answer)) {
    return { choice_indexes: answer.split(',').map(number => Number(number) - 1) }
  }
  const index = /^\d+$/.test(answer.trim()) ? Number(answer) - 1 : -1
  return choices[index] === undefined ? { text: answer } : { choice_index: index }
}

/** `svc session runtime <id> [--provider …] [--model …] [--effort …] [--speed …] [--reset]` */
export async function runRuntime(context: CommandContext): Promise<void> {
  const { args, options, client, out } = context
  const id = String(args.session_id)
  const base = await sessionPath(context)
  const { session } = (await client.request('GET', base)) as { session: Session }
  const { provider, model, effort, speed, reset } = options
  if (reset === true) {
    const now = await choose(context, base, session, {})
    const path = `${base}/runtime?expected_revision=${now.runtime.selection_revision}`
    return show(context, ((await client.request('DELETE', path)) as { session: SessionDetail }).session)
  }
  if ([provider, model, effort, speed].every(option => option === undefined)) {
    if (out.json) return out.value({ session })
    out.line(`provider: ${session.provider}`)
    out.line(`model: ${session.model ?? `the default of ${session.provider}`}`)
    if (session.reasoning_effort) out.line(`effort: ${session.reasoning_effort}`)
    if (session.speed) out.line(`speed: ${session.speed} (${session.speed_resolution?.status})`)
    for (const { id, current, values = [] } of session.acp_caps?.config_options ?? []) {
      const others = values.map(({ value }) => value).join(', ')
      out.line(out.color('dim', `  ${id}: ${current ?? ''}${others && ` (of ${others})`}`))
    }
    out.line(out.color('dim', `change it: ${command('session runtime', id, '--model', placeholder('model'))}`))
    return
  }
  show(context, await choose(context, base, session, { provider, model, reasoning_effort: effort, speed }))
}

/** Changes the runtime, based on the current values. */
export async function choose(
  { client }: Pick<CommandContext, 'client'>,
  base: string,
  session: Session,
  wanted: Readonly<Record<string, unknown>>,
): Promise<SessionDetail> {
  const { selected } = (session as Partial<SessionDetail>).runtime ?? {}
  const { model, reasoning_effort, speed } = session
  const provider = selected?.provider ?? session.provider
  const choices = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined))
  // Models and efforts are specific to a provider.
  const isOther = (choices.provider ?? provider) !== session.provider
  const kept = isOther ? (choices.provider === undefined ? selected : {}) : { model, reasoning_effort, speed }
  const runtime = { ...kept, provider, ...choices }
  const body = { expected_revision: null, runtime }
  return ((await client.request('PUT', `${base}/runtime`, body)) as { session: SessionDetail }).session
}

function show({ out }: CommandContext, session: SessionDetail): void {
  if (out.json) {
    out.value({ session })
    return
  }
  const { effective, selected, status } = session.runtime
  const model = effective?.model ?? selected?.model ?? 'the default of the agent'
  const effort = effective?.reasoning_effort ?? selected?.reasoning_effort
  const provider = selected && selected.provider !== session.provider ? selected.provider : undefined
  if (provider !== undefined) {
    const its = selected?.model ? `, model ${selected.model}` : ''
    out.line(`provider: ${provider}${its}, from its next prompt on; it receives the conversation so far`)
    return
  }
  out.line(
    `model: ${model}${effort ? `, effort ${effort}` : ''}${status === 'running' ? '' : ', from its next prompt on'}`,
  )
}

/** `svc session rewind <id> [--message …]`: goes back to before the last prompt by default. */
export async function runRewind(context: CommandContext): Promise<void> {
  const { args, options, client, out, fault } = context
  const id = String(args.session_id)
  const base = await sessionPath(context)
  const transcript = (await client.request('GET', `${base}/transcript?limit=200`)) as TranscriptReply
  const prompts = transcript.entries.filter(({ message }) => message.role === 'user')
  const message_id = options.message ?? prompts.at(-1)?.message.id
  if (message_id === undefined)
    return fault('message_not_found', 'there is no prompt to go back to', command('session recap', id))
  const body = {
    message_id,
    idempotency_key: randomBytes(8).toString('hex'),
    expected_epoch: transcript.epoch,
    expected_generation: transcript.generation,
    expected_max_sequence: transcript.max_sequence,
  }
  const reply = (await client.request('POST', `${base}/rewind`, body)) as RewindSessionReply
  if (out.json) return out.value(reply)
  const { draft_text, archived_event_count, changed_files = [] } = reply.rewind
  out.line(`rewound to before: ${draft_text.split('\n')[0]} (${archived_event_count} events removed)`)
  if (changed_files.length > 0) {
    out.line(out.color('yellow', 'Files that the removed turns changed stay as they are:'))
    for (const file of changed_files) out.line(`  ${file}`)
  }
}

/** `svc session fork <id> [--name …] [--worktree …]` */
export async function runFork(context: CommandContext): Promise<void> {
  const { options, client, out } = context
  const { name, worktree } = options
  const body = {
    confirmed: true,
    ...(worktree === undefined ? { new_worktree: name === undefined ? {} : { name } } : { worktree }),
  }
  const reply = (await client.request('POST', `${await sessionPath(context)}/worktree-fork`, body)) as {
    session: SessionDetail
  }
  if (out.json) return out.value(reply)
  const { id, workspace_path } = reply.session
  out.id(id)
  out.line(`${id} continues in ${workspace_path}; uncommitted changes stay in the old place`)
  out.line(out.color('dim', `next: ${command('session attach', id)}`))
}
