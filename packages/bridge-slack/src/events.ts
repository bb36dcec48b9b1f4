import type { InboundEvent } from '../../bridge-kit/src/index.js'
import { clip } from '../../bridge-kit/src/index.js'
import { names, readable } from './text.js'

/** The identity of the bot. */
export interface Me {
  readonly team: string
  readonly teamName: string
  readonly user: string
  readonly name: string
  readonly bot: string
}

/** A file of a message, as Slack describes it. */
export interface SlackFile {
  readonly name?: string
  readonly mimetype?: string
  readonly size?: number
  readonly url_private_download?: string
  readonly url_private?: string
  readonly mode?: string
  readonly file_access?: string
}

/** A channel, or a thread below a message of it. */
export interface ChannelLocation {
  readonly channel: string
  readonly thread?: string
}

/** The event in an envelope; its files are not fetched yet. */
export interface Found {
  readonly event: InboundEvent
  readonly files: readonly SlackFile[]
  /** Set for messages. */
  readonly location?: ChannelLocation
  /** For a direct message: its channel and its person. */
  readonly direct?: { readonly user: string; readonly channel: string }
}

/** A message in an event or in a history. */
export interface SlackMessage {
  readonly type?: string
  readonly subtype?: string
  readonly channel?: string
  readonly channel_type?: string
  readonly user?: string
  readonly username?: string
  readonly bot_id?: string
  readonly bot_profile?: { readonly name?: string }
  readonly text?: string
  readonly ts?: string
  readonly event_ts?: string
  readonly thread_ts?: string
  readonly parent_user_id?: string
  readonly files?: readonly SlackFile[]
  readonly message?: SlackMessage
  readonly previous_message?: SlackMessage
  readonly reaction?: string
  readonly item?: { readonly channel?: string; readonly ts?: string }
  readonly item_user?: string
}

/** Subtypes of written messages; other subtypes report changes of a channel. */
const WRITTEN = new Set([undefined, 'bot_message', 'file_share', 'me_message', 'thread_broadcast'])
const MOST_FILES = 10

/** The event in an envelope of one type; undefined: the envelope is not for the daemon. */
export function foundIn(type: string, body: unknown, me: Me, threads: boolean): Found | undefined {
  if (type === 'events_api') {
    const { event_id: id, event } = (body ?? {}) as { event_id?: string; event?: SlackMessage }
    if (!event) return undefined
    if (event.type === 'reaction_added') return reaction(event, id, me)
    if (event.type !== 'message' && event.type !== 'app_mention') return undefined
    return event.subtype === 'message_changed' ? changed(event, id, me, threads) : message(event, me, threads)
  }
  if (type === 'slash_commands') return slashCommand(body as Slash, me)
  return type === 'interactive' ? pressed(body as Pressed, me) : undefined
}

function message(event: SlackMessage, me: Me, threads: boolean): Found | undefined {
  const { channel, ts, text = '', user, bot_id: bot } = event
  if (channel === undefined || ts === undefined || !WRITTEN.has(event.subtype)) return undefined
  if (user === me.user || (bot !== undefined && bot === me.bot)) return undefined
  const sender = user ?? bot
  const files = (event.files ?? []).slice(0, MOST_FILES)
  if (sender === undefined || (text.trim() === '' && files.length === 0)) return undefined
  const isDirect = event.channel_type === 'im' || channel.startsWith('D')
  const name = event.username ?? event.bot_profile?.name
  const isReplyToMe = event.thread_ts !== undefined && event.parent_user_id === me.user
  const thread = event.thread_ts ?? (isDirect || !threads ? undefined : ts)
  return {
    event: {
      // Slack sends a mention twice with different ids: as a message and as a mention.
      idempotency_key: `${me.team}:${channel}:${ts}`,
      family: 'message',
      sender: {
        id: sender,
        ...(name === undefined ? {} : { username: clip(name, 200) }),
        authenticated: user !== undefined,
        ...(bot === undefined ? {} : { is_bot: true }),
      },
      peer_id: sender,
      ...(isDirect ? {} : { group_id: channel }),
      ...(thread === undefined ? {} : { thread_id: thread }),
      message_id: ts,
      ...(event.thread_ts === undefined || event.thread_ts === ts ? {} : { reply_to_message_id: event.thread_ts }),
      text: readable(text, me.user),
      addressed: isDirect || event.type === 'app_mention' || names(text, me.user) || isReplyToMe,
      ...timeOf(ts),
    },
    files,
    location: {
      channel,
      ...(event.thread_ts === undefined || event.thread_ts === ts ? {} : { thread: event.thread_ts }),
    },
    ...(isDirect && user !== undefined ? { direct: { user, channel } } : {}),
  }
}

/** The event of an edit. Slack also reports an edit when it has loaded the preview of a link. */
function changed(event: SlackMessage, id: string | undefined, me: Me, threads: boolean): Found | undefined {
  const { message: now, previous_message: before, channel, channel_type: kind } = event
  if (!now || now.text === before?.text) return undefined
  const at = { ...(channel === undefined ? {} : { channel }), ...(kind === undefined ? {} : { channel_type: kind }) }
  const found = message({ ...now, ...at, type: 'message' }, me, threads)
  if (!found) return undefined
  const key = id ?? `${found.event.idempotency_key}:${event.event_ts}`
  return { ...found, files: [], event: { ...found.event, family: 'edit', idempotency_key: key } }
}

function reaction(event: SlackMessage, id: string | undefined, me: Me): Found | undefined {
  const { user, reaction: name, item } = event
  if (!user || user === me.user || !name || !item?.channel || !item.ts || id === undefined) return undefined
  const isDirect = item.channel.startsWith('D')
  return {
    event: {
      idempotency_key: id,
      family: 'reaction',
      sender: { id: user, authenticated: true },
      peer_id: user,
      ...(isDirect ? {} : { group_id: item.channel }),
      message_id: item.ts,
      text: `:${name}:`,
      action_id: name,
      addressed: event.item_user === me.user,
    },
    files: [],
  }
}

interface Slash {
  readonly command?: string
  readonly text?: string
  readonly user_id?: string
  readonly user_name?: string
  readonly channel_id?: string
  readonly trigger_id?: string
}

function slashCommand(
  { text = '', user_id: user, user_name: name, channel_id: channel, trigger_id: id }: Slash,
  me: Me,
) {
  if (!user || !channel || !id || text.trim() === '') return undefined
  const isDirect = channel.startsWith('D')
  return {
    event: {
      idempotency_key: `${me.team}:command:${id}`,
      family: 'command',
      sender: { id: user, ...(name === undefined ? {} : { username: name }), authenticated: true },
      peer_id: user,
      ...(isDirect ? {} : { group_id: channel }),
      text: readable(text, me.user),
      addressed: true,
    },
    files: [],
  } as const
}

interface Pressed {
  readonly type?: string
  readonly user?: { readonly id?: string; readonly username?: string }
  readonly channel?: { readonly id?: string }
  readonly message?: { readonly ts?: string; readonly thread_ts?: string }
  readonly trigger_id?: string
  readonly actions?: readonly { readonly action_id?: string; readonly value?: string }[]
}

function pressed({ type, user, channel, message: shown, trigger_id: id, actions }: Pressed, me: Me): Found | undefined {
  const action = actions?.[0]
  const name = action?.value ?? action?.action_id
  if (type !== 'block_actions' || !user?.id || !channel?.id || !id || !name) return undefined
  return {
    event: {
      idempotency_key: `${me.team}:action:${id}`,
      family: 'action',
      sender: { id: user.id, ...(user.username ? { username: user.username } : {}), authenticated: true },
      peer_id: user.id,
      ...(channel.id.startsWith('D') ? {} : { group_id: channel.id }),
      ...(shown?.thread_ts ? { thread_id: shown.thread_ts } : {}),
      ...(shown?.ts ? { message_id: shown.ts } : {}),
      action_id: clip(name, 500),
      addressed: true,
    },
    files: [],
  }
}

function timeOf(ts: string): { readonly received_at?: number } {
  const ms = Math.round(Number(ts) * 1000)
  return Number.isSafeInteger(ms) && ms >= 0 ? { received_at: ms } : {}
}
