import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import type { CommandContext, CommandTerminal } from '../../../../kernel/plugin.js'
import type { ConversationChange, CoordinationMessage } from '../../../../schemas/network/agent.js'
import type { SentMessage } from '../../../../schemas/network/messages.js'
import { MessageLines, unwoken } from './message-lines.js'

/** Additional context of built-in commands, compared with those of extensions. */
export type Context = CommandContext & {
  readonly out: { readonly width?: number }
}
type Options = CommandContext['options']

/** `svc network send <channel> [text]`: as the session that it runs in, unless another one is named. */
export async function runSend(context: Context): Promise<void> {
  const { args, options, client, out, terminal } = context
  const { session, kind = 'say', intent, mention, direct } = options
  const workspace = encodeURIComponent(String(options.workspace))
  const message = {
    channel: args.channel,
    kind,
    session_id: session ?? (await ownSession(context)),
    body: { ...(await bodyOf(context, kind === 'say')), ...(intent !== undefined && { intent }) },
    ...named({ to: options.to, id: options.id, work_id: options.work, reply_to: options['reply-to'] }),
    ...named({ thread_id: options.thread, direct_id: direct }),
    ...(mention !== undefined && {
      mentions: String(mention)
        .split(',')
        .map(one => one.trim())
        .filter(Boolean),
    }),
  }
  const send = async (confirmed: boolean) =>
    (await client.request('POST', `/api/workspaces/${workspace}/network/send`, {
      ...message,
      ...(confirmed && { confirm_wakes: true }),
    })) as { message: SentMessage }
  let reply: { message: SentMessage }
  try {
    reply = await send(options['confirm-wakes'] === true)
  } catch (error) {
    const { code, message: why } = error as { code?: unknown; message?: unknown }
    if (code !== 'wake_confirmation_required' || !terminal || out.json) throw error
    out.line(String(why))
    if (!(await isConfirmed(terminal, context, 'Send it?')))
      return context.fault('not_sent', 'the message was not sent')
    reply = await send(true)
  }
  if (out.json) return out.value(reply)
  const { id, thread_id: thread, direct_id: room } = reply.message
  out.id(id)
  out.line(`sent ${id} to ${args.channel} (${thread ?? room ?? kind})`)
  for (const line of unwoken(reply.message)) out.line(line)
}

/** `svc network watch [channel]`: prints the newest messages, then follows until interrupted. */
export async function runWatch(context: Context): Promise<void> {
  const { args, options, client, out, signal } = context
  const query = new URLSearchParams({
    ...(args.channel !== undefined && { channel: args.channel }),
    ...(options.recent !== undefined && { recent: String(options.recent) }),
  }).toString()
  const base = `/api/workspaces/${encodeURIComponent(String(options.workspace))}/network/watch`
  const lines = new MessageLines(context, args.channel === undefined)
  if (!out.json) lines.head()
  for await (const { event, data } of client.stream(`${base}${query && `?${query}`}`, { signal })) {
    if (event === 'error') return failed(context, data)
    const { message } = data as ConversationChange
    if (!message) continue
    if (out.json) (out.row ?? out.value).call(out, message)
    else lines.show(message)
  }
}

/** `svc ch send <channel> [text]` */
export async function runAgentSend(context: Context): Promise<void> {
  const { args, options } = context
  const { to } = options
  const about = aboutOf(options, 'status', to === undefined ? {} : { ext: { to_session_id: to } })
  await said(context, `${encodeURIComponent(String(args.channel))}/send`, about)
}

/** `svc ch reply <message> [text]` */
export async function runAgentReply(context: Context): Promise<void> {
  const { args, options } = context
  await said(context, 'reply', { ...aboutOf(options, 'reply', {}), reply_to_message_id: args.message })
}

/** `svc ch recv <channel>`: acknowledges messages only after printing them, so that none is lost. */
export async function runAgentReceive(context: Context): Promise<void> {
  const { args, options, client, out } = context
  const { wait, limit } = options
  const url = `/api/agent/channels/${encodeURIComponent(String(args.channel))}/recv`
  const query = new URLSearchParams({
    ...(wait === true && { wait: 'true' }),
    ...(limit !== undefined && { limit: String(limit) }),
  }).toString()
  const reply = (await client.request('GET', `${url}${query && `?${query}`}`, undefined, { waits: true })) as {
    messages: CoordinationMessage[]
  }
  if (out.json) out.value(reply)
  else if (reply.messages.length === 0) out.line('no message waits')
  for (const { message_id: id, from_session_id: from, metadata, body } of out.json ? [] : reply.messages) {
    out.line(out.color('bold', `${id}  ${metadata.message_kind} from ${from}`))
    out.line(typeof body === 'string' ? body : JSON.stringify(body))
  }
  const last = reply.messages.at(-1)
  if (last) await client.request('GET', `${url}?limit=0&after=${encodeURIComponent(last.message_id)}`)
}

async function said(context: Context, path: string, about: object): Promise<void> {
  const { client, out } = context
  const { text, ...value } = await bodyOf(context, true)
  const body = { ...about, body: Object.keys(value).length === 0 ? text : { text, ...value } }
  const reply = (await client.request('POST', `/api/agent/channels/${path}`, body)) as { message: CoordinationMessage }
  if (out.json) return out.value(reply)
  const { message_id: id, channel_id: channel } = reply.message
  out.id(id)
  out.line(`sent ${id} to ${channel}`)
  for (const line of unwoken(reply.message)) out.line(line)
}

function aboutOf({ kind, correlation, 'idempotency-key': key }: Options, usual: string, more: object): object {
  return {
    metadata: { message_kind: kind ?? usual, ...named({ correlation_id: correlation }), ...more },
    ...named({ idempotency_key: key }),
  }
}

/** The given members. */
const named = (members: Options): Record<string, unknown> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))

/** The body of a message: from `--body`, else a text. */
async function bodyOf(context: Context, needsText: boolean): Promise<Record<string, unknown>> {
  const { args, options, stdin, fault, path } = context
  if (options.body !== undefined && args.text !== undefined) return fault('usage', 'give a text or --body, not both')
  if (options.body !== undefined) {
    const body = parsed(String(options.body))
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { ...body }
    return fault('usage', '--body takes a JSON object', `svc ${path} --help`)
  }
  const text = args.text === '-' ? await stdin() : args.text
  if (text !== undefined && text.trim() !== '') return { text }
  if (!needsText) return {}
  return fault('usage', 'the text of the message is missing', `svc ${path} --help`)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function ownSession({ args, client, fault }: Context): Promise<string> {
  try {
    const { me } = (await client.request('GET', '/api/agent/me')) as { me: { self: { session_id: string } } }
    return me.self.session_id
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'identity_required') throw error
    const text = args.text ?? placeholder('text')
    const next = command('network send', String(args.channel), text, '--session', placeholder('id'))
    return fault('usage', 'this is not the agent of a session: give the sending session', next)
  }
}

function isConfirmed(terminal: CommandTerminal, { out }: Context, question: string): Promise<boolean> {
  out.text(`${question} [y/N] `)
  return new Promise(resolve => {
    const quiet = terminal.onLine(line => {
      quiet()
      resolve(/^y(es)?$/i.test(line?.trim() ?? ''))
    })
  })
}

function failed({ fault }: Context, data: unknown): never {
  const { error, code } = (data ?? {}) as { error?: unknown; code?: unknown }
  return fault(typeof code === 'string' ? code : 'stream', typeof error === 'string' ? error : 'the stream failed')
}
