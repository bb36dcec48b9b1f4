import { clip } from '../../../kernel/kit/text.js'
import type {
  Clarification,
  GoalOutcome,
  ListCommandsReply,
  ListQueuedPromptsReply,
  PromptReceipt,
  Session,
  SessionEvent,
} from '../../../schemas/sessions.js'
import type { Conversation } from './conversation.js'
import { contentOf } from './event-lines.js'
import { KEYS, SLASH } from './keys.js'
import { oneLine } from './one-line.js'
import type { TaskContext } from './task-context.js'
import { answerOf, choose } from './whole-commands.js'

/** Earlier prompts available with the arrow keys. */
const HISTORY = 100
/** Default width of the terminal, and maximum width of a list. */
const USUAL_WIDTH = 80

/** Limit of `/help`: commands of the agent. */
const MAX_COMMANDS = 60
/** Width of the column for keys and commands. */
const COLUMN = 20
const PERMISSIONS = ['deny-all', 'approve-reads', 'approve-all']

/** Runs a slash command of the CLI; resolves to false for input that is meant for the agent. */
export async function runSlash(line: string, talk: Conversation, context: TaskContext, base: string): Promise<boolean> {
  const [word = '', ...rest] = line.trim().split(/\s+/)
  const session = async () => ((await context.client.request('GET', base)) as { session: Session }).session
  const text = line.trim().slice(word.length).trim()
  switch (word) {
    case '/help':
      await showHelp(talk, context, base)
      return true
    case '/cancel':
      await talk.cancel()
      return true
    case '/output':
      talk.showMore()
      return true
    case '/steer':
      if (text === '') talk.say('the text for the agent is missing; for example: /steer use the other branch')
      else {
        await talk.send({ text, mode: 'steer' })
        talk.say('The agent gets it with its next tool result, or after this turn.')
      }
      return true
    case '/queue':
      await runQueue(rest, talk, context, base)
      return true
    case '/model': {
      const now = await session()
      if (rest.length === 0) {
        talk.say(`model: ${now.model ?? `the default of ${now.provider}`}`)
        return true
      }
      const { runtime } = await choose(context, base, now, { model: rest.join(' ') })
      const later = runtime.status === 'running' ? '' : ', from the next prompt on'
      talk.say(`model: ${runtime.selected?.model ?? rest[0]}${later}`)
      return true
    }
    case '/mode':
      await runMode(rest[0], talk, context, base)
      return true
    case '/answer': {
      const reply = (await context.client.request('GET', `${base}/clarifications`)) as {
        clarifications: Clarification[]
      }
      const [clarification] = reply.clarifications
      if (!clarification) talk.say('the agent has no open question')
      else {
        const path = `${base}/clarifications/${encodeURIComponent(clarification.request_id)}/answer`
        await context.client.request('POST', path, answerOf(clarification, rest.join(' ')))
      }
      return true
    }
    default:
      return false
  }
}

async function showHelp(talk: Conversation, { client, out }: TaskContext, base: string): Promise<void> {
  const row = (name: string, does: string) => talk.say(`${name.padEnd(COLUMN - 1)} ${does}`)
  if (talk.hasKeys) for (const [key, does] of KEYS) row(key, does)
  for (const [command, does] of SLASH) row(command, does)
  talk.say('Everything else is a prompt.')
  const { commands } = (await client.request('GET', `${base}/commands`)) as ListCommandsReply
  if (commands.length > 0) talk.say('Commands of the agent:')
  const width = Math.min(out.width ?? USUAL_WIDTH, USUAL_WIDTH) - 1
  for (const { canonical_token, input_hint, description } of commands.slice(0, MAX_COMMANDS)) {
    const name = oneLine([canonical_token, input_hint].filter(Boolean).join(' ')).padEnd(COLUMN - 1)
    talk.say(clip(`${name} ${oneLine(description)}`, width))
  }
  if (commands.length > MAX_COMMANDS) talk.say(`… ${commands.length - MAX_COMMANDS} more: svc session commands`)
}

/** `/queue`, and `/queue drop <number>` */
async function runQueue(words: readonly string[], talk: Conversation, context: TaskContext, base: string) {
  const { client, out } = context
  const { inputs } = (await client.request('GET', `${base}/prompt/queue`)) as ListQueuedPromptsReply
  const [verb, number] = words
  if (verb === 'drop' && number !== undefined) {
    const entry = /^\d+$/.test(number) ? inputs[Number(number) - 1] : undefined
    if (!entry) return talk.say(`no prompt ${oneLine(number)} waits; /queue lists them`)
    await client.request('DELETE', `${base}/prompt/queue/${encodeURIComponent(entry.id)}`)
    return talk.say(`removed: ${clip(oneLine(entry.text), USUAL_WIDTH / 2)}`)
  }
  if (verb !== undefined) return talk.say('/queue lists the prompts that wait; /queue drop 2 removes the second')
  if (inputs.length === 0) return talk.say('no prompt waits')
  const width = Math.min(out.width ?? USUAL_WIDTH, USUAL_WIDTH) - 1
  for (const [at, { text, mode }] of inputs.entries()) {
    talk.say(clip(`${at + 1}  ${mode === 'steer' ? 'steers: ' : ''}${oneLine(text)}`, width))
  }
}

/** `/mode`: shows the permission mode and the agent's own modes, or sets one of the latter. */
async function runMode(wanted: string | undefined, talk: Conversation, { client }: TaskContext, base: string) {
  const session = async () => ((await client.request('GET', base)) as { session: Session }).session
  const before = await session()
  const modes = before.acp_caps?.supported_modes ?? []
  if (wanted !== undefined) {
    const name = before.name ?? ''
    if (PERMISSIONS.includes(wanted)) await client.request('PATCH', base, { name, permissions: wanted })
    else if (modes.includes(wanted)) {
      await client.request('PATCH', base, { name, agent_mode: wanted })
      return talk.say(`mode of the agent: ${oneLine(wanted)}`)
    } else talk.say(`there is no mode ${oneLine(wanted)}`)
  }
  const { permissions } = await session()
  talk.say(`permissions: ${permissions ?? 'of the agent'} (one of ${PERMISSIONS.join(', ')})`)
  if (modes.length > 0) talk.say(`modes of the agent: ${modes.map(oneLine).join(', ')}`)
}

/** Position of an accepted prompt in the queue, for people; undefined when its turn began. */
export function queuedText({ queued, queue_position: position = 1 }: PromptReceipt): string | undefined {
  return queued === true ? `Queued (${ordinal(position)}).` : undefined
}

/** The result of a goal command, for people. */
export function goalText({ outcome, snapshot }: GoalOutcome): string {
  if (!snapshot) return outcome === 'cleared' ? 'goal cleared' : 'no goal; to set one: /goal <goal>'
  return `goal ${outcome === 'status' ? 'is' : `${outcome},`} ${snapshot.status}, turn ${snapshot.turns_used} of ${snapshot.turn_limit}`
}

/** The latest prompts of a session, newest first. */
export async function promptHistory({ client }: TaskContext, base: string): Promise<string[]> {
  try {
    const path = `${base}/events?type=user_message&limit=${HISTORY}`
    const { events } = (await client.request('GET', path)) as { events: SessionEvent[] }
    const texts = events.map(event => String(contentOf(event).text ?? ''))
    return texts.filter(text => text !== '' && !text.includes('\n')).reverse()
  } catch {
    // Input works without a history.
    return []
  }
}

function ordinal(position: number): string {
  const endings: Readonly<Record<string, string>> = { one: 'st', two: 'nd', few: 'rd' }
  return `${position}${endings[new Intl.PluralRules('en', { type: 'ordinal' }).select(position)] ?? 'th'}`
}
