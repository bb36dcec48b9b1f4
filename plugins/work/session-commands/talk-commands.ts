import { aborted } from '../../../kernel/kit/backoff.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import type { SessionEvent, WaitSessionReply } from '../../../schemas/sessions.js'
import { goalText, promptHistory, queuedText, runSlash } from './attach-commands.js'
import { attachedFiles, sendFiles } from './attached-files.js'
import { completer } from './completion.js'
import { Conversation, canGoOn, endOfTurn, newestSequence } from './conversation.js'
import { holdSession } from './lease.js'
import { sessionPath } from './session-path.js'
import type { TaskContext } from './task-context.js'
import { promptText } from './typed.js'

const INTERRUPTED = 130
/** Exit code after a takeover by another terminal: the same as for a detached run. */
const TAKEN_OVER = 10
/** Earlier events shown on attaching. */
const SHOWN_BEFORE = 20
/** Milliseconds of one wait request; a longer wait uses several requests. */
const WAIT_MS = 60_000

/** `svc session prompt <id> [text|-]` */
export async function runPrompt(context: TaskContext): Promise<number> {
  const { args, options, out } = context
  const id = String(args.session_id)
  const base = await sessionPath(context)
  const text = await promptText(context)
  const files = await attachedFiles(context)
  const body = {
    text,
    ...(files.length > 0 && { attachments: await sendFiles(context, base, files) }),
    mode: options.mode,
    message_id: options['message-id'],
    idempotency_key: options['idempotency-key'],
  }
  const before = await newestSequence(context, base)
  const talk = new Conversation(context, base, before)
  const prompt = await talk.send(body)
  const later = command('session events', id, '--follow')
  if (prompt.goal) {
    if (out.json) out.value({ prompt })
    else out.line(`${goalText(prompt.goal)}: ${command('session goal', id)}`)
    return 0
  }
  if (options['no-wait'] === true || prompt.replayed === true) {
    if (out.json) out.value({ prompt })
    else if (prompt.status === 'interrupted')
      out.line(`interrupted before the agent received it; send it again with another key: ${later}`)
    else out.line(`${prompt.replayed === true ? 'sent before' : prompt.status}: ${later}`)
    return 0
  }
  const queued = queuedText(prompt)
  if (queued !== undefined) talk.say(`${queued} Showing the running turn until then.`)
  talk.cancelOnInterrupt(prompt.queue_entry_id)
  const quiet = talk.typing(line => {
    if (line !== undefined)
      talk.say(`Questions cannot be answered here. To type prompts: ${command('session attach', id)}`)
  })
  try {
    for await (const event of talk.events(`after_sequence=${before}`)) {
      const end = await talk.endBy(event)
      if (!end || talk.isWaiting) continue
      if (event.type === 'session_stopped' && canGoOn(event)) {
        talk.say(`a prompt starts it again: ${command('session prompt', id, '…')}`)
      }
      if (event.type === 'error') talk.say(`Details: ${command('session health', id)}`)
      return talk.interrupted ? INTERRUPTED : end === 'completed' ? 0 : 1
    }
    return context.fault('session_gone', 'the session was removed while its turn ran', command('session list'))
  } finally {
    quiet?.()
    talk.resting()
    talk.endOnInterrupt()
  }
}

/** `svc session attach <id>` */
export async function runAttach(context: TaskContext): Promise<number> {
  const { args, client, out, terminal } = context
  const base = await sessionPath(context)
  const past = await newestSequence(context, base)
  const talk = new Conversation(context, base, past)
  const { session } = (await client.request('GET', base)) as {
    session: {
      agent_name: string
      state: string
      permissions?: string
      workspace_path?: string
      activity?: { turn_id: string }
    }
  }
  const left = new AbortController()
  let sent: () => void = () => {}
  let code = 0
  const leave = () => left.abort(new Error('the output was closed'))
  const lost = () => {
    talk.say('Another terminal is attached now; the session goes on there.')
    code = TAKEN_OVER
    leave()
  }
  const held = session.state === 'active' && terminal ? await holdSession(context, base, lost) : undefined
  const keys = terminal ? '. Type a prompt, or /help. Ctrl-C cancels a turn or leaves, Ctrl-D leaves' : ''
  const state = [session.agent_name, session.state, session.permissions].filter(Boolean).join(', ')
  out.line(out.color('dim', `attached to ${args.session_id} (${state})${keys}`))
  // Closing the terminal detaches like Ctrl-D; Ctrl-C goes to the running operation first.
  const giveBack = terminal && context.onInterrupt(leave, { anyEnd: true })
  if (session.activity) {
    talk.cancelOnInterrupt()
    talk.working()
  }
  const type = async (line: string) => {
    if (line.trim() === '/quit') return leave()
    if (held && !(await held.renew())) return
    if (await runSlash(line, talk, context, base)) return
    const prompt = await talk.send({ text: line })
    const message = prompt.goal ? goalText(prompt.goal) : queuedText(prompt)
    if (message !== undefined) talk.say(message)
    sent()
  }
  const root = session.workspace_path ?? ''
  const quiet = talk.typing(
    line => {
      if (line === undefined) leave()
      else if (line.trim() !== '') type(line).catch(error => talk.fail(error))
    },
    {
      history: context.screen ? await promptHistory(context, base) : [],
      complete: completer(context, { base, root, talk, id: String(args.session_id) }),
    },
  )
  const input = isPiped(context) ? new PipedInput(context, { base, talk, past, leave }) : undefined
  try {
    for (let query = `limit=${SHOWN_BEFORE}`; ; query = `after_sequence=${talk.last}`) {
      let again: Promise<void> | undefined
      const last = await follow(talk, query, left.signal, (event, end) => {
        input?.saw(event, end)
        // Only a prompt that comes after the stop starts the session again.
        if (event.type === 'session_stopped')
          again = new Promise(resolve => {
            sent = resolve
          })
      })
      if (left.signal.aborted) return input?.code ?? code
      if (last?.type !== 'session_stopped') return 0
      if (!terminal || !canGoOn(last)) return last.failure ? 1 : 0
      // A prompt whose answer came before the event has started it already.
      if (await isActive(context, base)) continue
      talk.say('A prompt starts it again. Ctrl-D leaves.')
      await Promise.race([again, aborted(left.signal)])
      if (left.signal.aborted) return code
    }
  } finally {
    quiet?.()
    talk.resting()
    talk.endOnInterrupt()
    await held?.release()
    giveBack?.()
  }
}

/** Whether the input is a pipe or a file, which has an end. */
const isPiped = ({ terminal, unseen }: TaskContext) => terminal === undefined && unseen === undefined

/** Standard input of `svc session attach` as one prompt. The command ends with that input, or with the turn. */
class PipedInput {
  code = 0
  /** The input ended without a prompt: the command ends after showing the history. */
  #isEmpty = false

  constructor(
    context: TaskContext,
    private readonly about: {
      readonly base: string
      readonly talk: Conversation
      readonly past: number
      readonly leave: () => void
    },
  ) {
    this.#read(context).catch(error => {
      this.about.talk.fail(error)
      this.code = 1
      this.about.leave()
    })
  }

  /** @param end the end of the prompt by this event, if it is that */
  saw(event: SessionEvent, end: string | undefined): void {
    if (end) this.code = end === 'completed' ? 0 : 1
    if (end || (this.#isEmpty && event.sequence >= this.about.past)) this.about.leave()
  }

  async #read(context: TaskContext): Promise<void> {
    const { talk, past, leave } = this.about
    const text = await context.stdin()
    if (text.trim() === '') {
      this.#isEmpty = true
      if (talk.last >= past) leave()
      return
    }
    await talk.send({ text: text.trimEnd() })
  }
}

async function isActive({ client }: TaskContext, base: string): Promise<boolean> {
  const { session } = (await client.request('GET', base)) as { session: { state: string } }
  return session.state === 'active'
}

/** Shows events until the stream ends or the reader detaches; returns the last one. */
async function follow(
  talk: Conversation,
  query: string,
  left: AbortSignal,
  saw: (event: SessionEvent, end: string | undefined) => void,
): Promise<SessionEvent | undefined> {
  let last: SessionEvent | undefined
  try {
    for await (const event of talk.events(query, left)) {
      last = event
      saw(event, await talk.endBy(event, left))
      if (event.type === 'user_message') talk.cancelOnInterrupt()
      else if (endOfTurn(event, event.turn_id)) talk.endOnInterrupt()
    }
  } catch (error) {
    if (!left.aborted) throw error
  }
  return last
}

/** `svc session wait <id>` */
export async function runWait(context: TaskContext): Promise<number> {
  const { args, options, client, out, fault } = context
  const id = String(args.session_id)
  const base = await sessionPath(context)
  const until = options.until === undefined ? undefined : String(options.until).split(',')
  const deadline = options.timeout === undefined ? Number.POSITIVE_INFINITY : Number(options.timeout) * 1000
  for (let waited = 0; ; ) {
    const timeout_ms = Math.max(0, Math.min(WAIT_MS, deadline - waited))
    const body = { timeout_ms, until }
    const waits = `waiting for ${id}`
    const reply = (await client.request('POST', `${base}/wait`, body, { waits })) as WaitSessionReply
    waited += reply.waited_ms
    if (reply.outcome === 'reached') {
      if (out.json) out.value(reply)
      else out.line(`${id} is ${reply.state}`)
      return 0
    }
    if (timeout_ms < WAIT_MS) {
      return fault('wait_timeout', `${id} is ${reply.state} after ${options.timeout} s`, command('session attach', id))
    }
  }
}
