import { command } from '../../../kernel/kit/commands/command-line.js'
import type { DoctorReply } from '../../../schemas/daemon.js'
import type { Provider } from '../../../schemas/providers.js'
import type { PromptReceipt, Session, SessionEvent } from '../../../schemas/sessions.js'
import { goalText, queuedText, runSlash } from './attach-commands.js'
import { attachedFiles, sendFiles } from './attached-files.js'
import { completer } from './completion.js'
import { Conversation, canGoOn, newestSequence } from './conversation.js'
import { contentOf } from './event-lines.js'
import { sandboxText, sandboxWarning } from './sandbox-text.js'
import type { FolderChanges, TaskContext } from './task-context.js'
import { confirm, promptText } from './typed.js'

/** The end of `svc run`, with its exit code; 2 to 8 have the same meaning in every command. */
export const RUN_EXITS = {
  /** The agent finished. */
  completed: 0,
  /** The agent, or its start, failed. */
  failed: 1,
  /** The agent stopped early: at a limit, or because it refused to continue. */
  unfinished: 1,
  /** The agent finished, but a request was rejected without a person to answer it. */
  denied: 9,
  /** The reader detached; the agent continues. */
  detached: 10,
  /** The turn was canceled. */
  canceled: 130,
} as const
type RunEnd = keyof typeof RUN_EXITS

/** Maximum number of listed changes; the rest is counted. */
const MAX_CHANGES = 20
const MARKS = { added: '+', modified: '~', deleted: '-' } as const

/** Milliseconds in which standard input has to begin when the prompt is an argument. */
const INPUT_MS = 3000

/** `svc run [prompt]`: starts a session and runs one task to its end. */
export async function runRun(context: TaskContext): Promise<number> {
  if (context.options.print !== true || context.out.json) return (await runShown(context)).code
  const answer = new Answer()
  const { code, hint } = await runShown({ ...withoutOutput(context), watched: event => answer.take(event) })
  const { out } = context
  if (answer.text !== '') out.text(answer.text.endsWith('\n') ? answer.text : `${answer.text}\n`)
  if (code !== 0) out.note?.(hint ?? ENDED[code] ?? answer.failure ?? 'the agent did not finish')
  return code
}

const ENDED: Readonly<Record<number, string>> = {
  [RUN_EXITS.denied]: 'requests of the agent were rejected',
  [RUN_EXITS.canceled]: 'the turn was canceled',
}

/** How to allow the rejected requests; undefined when the permissions were chosen. Without working sandboxes it needs more. */
async function deniedHint({ client, options }: TaskContext): Promise<string | undefined> {
  if (options.permissions !== undefined) return undefined
  const { items } = (await client
    .request('GET', '/api/doctor?only=sandboxes')
    .catch(() => ({}))) as Partial<DoctorReply>
  const isUnusable = options.sandbox === undefined && items?.some(({ code }) => code === 'sandbox_unavailable')
  const more = isUnusable ? ' --sandbox none' : ''
  return `Requests were rejected, because no one can be asked. To allow them: --permissions approve-all${more}`
}

/** The prompt, with standard input appended. */
async function wholePrompt(context: TaskContext): Promise<string> {
  const text = await promptText(context)
  if (context.args.prompt === undefined || context.args.prompt === '-') return text
  const pipedText = await context.piped?.(INPUT_MS)
  return pipedText === undefined || pipedText.trim() === ''
    ? text
    : `${text}\n\n<stdin>\n${pipedText.trimEnd()}\n</stdin>`
}

async function runShown(context: TaskContext): Promise<{ readonly code: number; readonly hint?: string | undefined }> {
  const { out } = context
  const text = await wholePrompt(context)
  const files = await attachedFiles(context)
  const session = await openSession(context)
  const base = `/api/workspaces/${encodeURIComponent(String(session.workspace_id))}/sessions/${session.id}`
  out.id(session.id)
  await announce(context, session)
  const root = session.workspace_path ?? ''
  const changesOf = await context.watchFolder?.(root)
  const { id } = session
  const before = await newestSequence(context, base)
  const talk = new Conversation(context, base, before, { id, isUnattended: true })
  const summary = { id, agent: session.agent_name, workspace: root, permissions: session.permissions }
  if (out.json) row(context, { type: 'run_started', session_id: id, ...summary })
  const attachments = await sendFiles(context, base, files)
  const end = await converse(
    context,
    { base, root, talk, id },
    { text, ...(files.length > 0 && { attachments }) },
    before,
  )
  const changes = end === 'detached' ? undefined : await changesOf?.()
  if (out.json) {
    row(context, {
      type: 'run_ended',
      session_id: id,
      status: end,
      exit_code: RUN_EXITS[end],
      denied: talk.denied,
      ...changes,
    })
    return { code: RUN_EXITS[end] }
  }
  if (changes) showChanges(context, changes)
  const how = end === 'detached' ? 'Detached; the agent goes on' : 'Continue'
  out.line(out.color('dim', `${how}: ${command('session attach', id)}`))
  const hint = end === 'denied' ? await deniedHint(context) : undefined
  if (hint !== undefined) out.line(out.color('dim', hint))
  return { code: RUN_EXITS[end], hint }
}

/** Sends the prompt and follows its turn and later input to the end. */
async function converse(
  context: TaskContext,
  {
    base,
    root,
    talk,
    id,
  }: { readonly base: string; readonly root: string; readonly talk: Conversation; readonly id: string },
  body: { readonly text: string; readonly attachments?: readonly string[] },
  before: number,
): Promise<RunEnd> {
  const left = new AbortController()
  const detach = () => left.abort(new Error('the output was closed'))
  const prompt = await talk.send(body)
  if (prompt.goal) {
    talk.say(goalText(prompt.goal))
    return 'detached'
  }
  talk.cancelOnInterrupt(prompt.queue_entry_id, detach)
  const take = (line: string | undefined) => {
    if (line === undefined) detach()
    else if (line.trim() !== '') follow(line).catch(error => talk.fail(error))
  }
  const quiet = talk.typing(take, { complete: completer(context, { base, root, talk, id }) })
  const follow = async (line: string) => {
    if (line.trim() === '/quit') return detach()
    if (await runSlash(line, talk, context, base)) return
    const receipt: PromptReceipt = await talk.send({ text: line })
    if (receipt.goal) return talk.say(goalText(receipt.goal))
    const queued = queuedText(receipt)
    if (queued !== undefined) talk.say(queued)
  }
  let end: RunEnd = 'failed'
  let expired = 0
  try {
    for await (const event of talk.events(`after_sequence=${before}`, left.signal)) {
      context.watched?.(event)
      const how = await talk.endBy(event, left.signal)
      if (!how) continue
      expired += Number(contentOf(event).expired_requests ?? 0)
      end = talk.interrupted ? 'canceled' : how
      if (talk.isWaiting) {
        talk.cancelOnInterrupt(undefined, detach)
        continue
      }
      if (event.type === 'session_stopped' && canGoOn(event)) talk.say('A prompt starts it again.')
      break
    }
  } catch (error) {
    if (!left.signal.aborted) throw error
  } finally {
    quiet?.()
    talk.resting()
    talk.endOnInterrupt()
  }
  if (left.signal.aborted) return 'detached'
  return end === 'completed' && talk.denied + expired > 0 ? 'denied' : end
}

/** A context without output and without questions. */
function withoutOutput(context: TaskContext): TaskContext {
  const { out } = context
  const nothing = () => {}
  const silent = { line: nothing, text: nothing, id: nothing, value: nothing, table: nothing }
  const { terminal: _terminal, screen: _screen, markdown: _markdown, ...rest } = context
  return { ...rest, out: { json: false, ...silent, color: (name, text) => out.color(name, text) } }
}

/** The last answer of a run, and its error. */
class Answer {
  text = ''
  failure: string | undefined

  take(event: SessionEvent): void {
    const { text, error, stop_reason: reason } = contentOf(event)
    if (event.type === 'agent_message') this.text += String(text ?? '')
    // Text before further tool calls is not the answer.
    else if (event.type === 'tool_call' || event.type === 'user_message') this.text = ''
    else if (event.type === 'error') this.failure = String(error)
    else if (event.type === 'done') this.failure = `the agent stopped before it had finished (${String(reason)})`
  }
}

/** Starts the session. When no agent can run, it offers the one included in the package. */
async function openSession(context: TaskContext): Promise<Session> {
  const { options, client, out } = context
  const create = async (agent: unknown) => {
    const body = {
      workspace: options.workspace,
      ...(agent !== undefined && { agent_name: agent }),
      ...(options.model !== undefined && { model: options.model }),
      ...(options.permissions !== undefined && { permissions: options.permissions }),
      ...(options.sandbox !== undefined && { sandbox: options.sandbox }),
    }
    return ((await client.request('POST', '/api/sessions', body)) as { session: Session }).session
  }
  if (options.agent === undefined) await askLogins(context)
  try {
    return await create(options.agent)
  } catch (error) {
    if (options.agent !== undefined || (error as { code?: unknown }).code !== 'agent_not_runnable') throw error
    const install = await installHint(context)
    if (!context.terminal) {
      return context.fault(
        'agent_not_runnable',
        `no agent is installed. Install one: ${install}`,
        'svc run --agent report …',
      )
    }
    out.line('No agent is installed. Install one:')
    out.line(`  ${install}`)
    out.line('With an OpenAI-compatible endpoint, no agent is needed: svc init --endpoint <url>')
    out.line('The agent "report" is built in and needs no account:')
    out.line('it reads the folder and writes a report.')
    if (!(await confirm(context, 'Run it now?'))) {
      return context.fault('agent_not_runnable', 'no agent is installed', install)
    }
    return create('report')
  }
}

/** Checks the unknown login states of installed providers, because a logged-in provider is preferred. */
async function askLogins({ client }: TaskContext): Promise<void> {
  const { providers } = (await client.request('GET', '/api/providers')) as { providers: Provider[] }
  const unknown = providers.filter(
    ({ auth_status: { state, status_command, last_probe_at } }) =>
      state === 'unchecked' && status_command !== undefined && !last_probe_at,
  )
  const ask = ({ name }: Provider) => client.request('POST', `/api/providers/${encodeURIComponent(name)}/auth/probe`)
  await Promise.allSettled(unknown.map(ask))
}

async function installHint({ client }: TaskContext): Promise<string> {
  const { providers } = (await client.request('GET', '/api/providers')) as { providers: Provider[] }
  return providers.find(({ install_command }) => install_command)?.install_command ?? command('provider list')
}

/** Prints the agent, its folder, and the operations that it may do without a question. */
async function announce(context: TaskContext, session: Session): Promise<void> {
  const { client, out } = context
  if (out.json) return
  const { id, agent_name, provider, permissions, workspace_path } = session
  const by = provider === 'local' ? '' : ` (${provider})`
  const who = `${agent_name}${by} in ${workspace_path} · permissions ${permissions} · ${sandboxText(session)}`
  for (const line of [who, id]) out.line(out.color('dim', line))
  const unconfined = sandboxWarning(session)
  if (unconfined !== undefined) out.line(out.color('yellow', unconfined))
  const found = (await client.request('GET', `/api/providers/${encodeURIComponent(provider)}`)) as Provider
  const { state, message } = found.auth_status
  if (state === 'not_authenticated') out.line(out.color('yellow', `warning: ${message ?? 'it is not logged in'}`))
}

function showChanges({ out }: TaskContext, { changes, isComplete, head }: FolderChanges): void {
  const more = isComplete ? '' : ' (the folder is too large to look at all of it)'
  if (changes.length === 0) out.line(out.color('dim', `No file changed${more}.`))
  else out.line(out.color('bold', `${changes.length} ${changes.length === 1 ? 'file' : 'files'} changed${more}:`))
  const colors = { added: 'green', modified: 'yellow', deleted: 'red' } as const
  for (const { path, change } of changes.slice(0, MAX_CHANGES)) {
    out.line(out.color(colors[change], `  ${MARKS[change]} ${path.replace(/[\n\r]/g, '?')}`))
  }
  if (changes.length > MAX_CHANGES) out.line(out.color('dim', `  … ${changes.length - MAX_CHANGES} more`))
  if (head !== undefined) out.line(out.color('dim', `New commit at HEAD: ${head.slice(0, 12)}`))
}

function row({ out }: TaskContext, value: unknown): void {
  ;(out.row ?? out.value).call(out, value)
}
