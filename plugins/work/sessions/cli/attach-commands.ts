import type { Clarification, GoalOutcome, PromptReceipt, Session, SessionEvent } from '../../../../schemas/sessions.js'
import type { Conversation } from './conversation.js'
import { contentOf } from './event-lines.js'
import type { TaskContext } from './task-context.js'
import { answerOf, choose } from './whole-commands.js'

/** Earlier prompts that the arrow keys bring back. */
const HISTORY = 100

const HELP = [
  '/help          show this',
  '/cancel        cancel the running turn; Ctrl-C does the same',
  '/model [name]  show the model, or change it',
  '/mode [name]   show what the agent may do without asking, or change it',
  '/answer text   answer what the agent asks: the number of a choice, or a text',
  '/goal text     let the agent work towards a goal over many turns; /goal shows it, and takes pause, resume, clear',
  '/quit          leave; the session goes on. Ctrl-D does the same',
  'Everything else is a prompt. While a turn runs it waits in the queue.',
]

/** What a typed line begins with that is for this command and not for the agent. */
export async function runSlash(line: string, talk: Conversation, context: TaskContext, base: string): Promise<boolean> {
  const [word = '', ...rest] = line.trim().split(/\s+/)
  const session = async () => ((await context.client.request('GET', base)) as { session: Session }).session
  switch (word) {
    case '/help':
      for (const text of HELP) talk.say(text)
      return true
    case '/cancel':
      await talk.cancel()
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
    case '/mode': {
      if (rest.length > 0) {
        const { name = '' } = await session()
        await context.client.request('PATCH', base, { name, permissions: rest[0] })
      }
      const { permissions, acp_caps } = await session()
      talk.say(`permissions: ${permissions ?? 'of the agent'} (of deny-all, approve-reads, approve-all)`)
      const modes = acp_caps?.supported_modes ?? []
      if (modes.length > 0) talk.say(`modes of the agent: ${modes.join(', ')}`)
      return true
    }
    case '/answer': {
      const reply = (await context.client.request('GET', `${base}/clarifications`)) as {
        clarifications: Clarification[]
      }
      const [asked] = reply.clarifications
      if (!asked) talk.say('the agent asks nothing')
      else {
        const path = `${base}/clarifications/${encodeURIComponent(asked.request_id)}/answer`
        await context.client.request('POST', path, answerOf(asked, rest.join(' ')))
      }
      return true
    }
    default:
      return false
  }
}

/** What a person is told of a prompt that was taken. */
export function queuedText({ queued, queue_position: place = 1 }: PromptReceipt): string | undefined {
  return queued === true ? `Queued (${ordinal(place)}).` : undefined
}

/** What a goal command came to, for people. */
export function goalText({ outcome, snapshot }: GoalOutcome): string {
  if (!snapshot) return outcome === 'cleared' ? 'goal cleared' : 'no goal; to set one: /goal <what is to be reached>'
  return `goal ${outcome === 'status' ? 'is' : `${outcome},`} ${snapshot.status}, turn ${snapshot.turns_used} of ${snapshot.turn_limit}`
}

/** The latest prompts of a session, the newest first. */
export async function promptHistory({ client }: TaskContext, base: string): Promise<string[]> {
  try {
    const path = `${base}/events?type=user_message&limit=${HISTORY}`
    const { events } = (await client.request('GET', path)) as { events: SessionEvent[] }
    const texts = events.map(event => String(contentOf(event).text ?? ''))
    return texts.filter(text => text !== '' && !text.includes('\n')).reverse()
  } catch {
    // Without a history one can type all the same.
    return []
  }
}

function ordinal(place: number): string {
  const endings: Readonly<Record<string, string>> = { one: 'st', two: 'nd', few: 'rd' }
  return `${place}${endings[new Intl.PluralRules('en', { type: 'ordinal' }).select(place)] ?? 'th'}`
}
