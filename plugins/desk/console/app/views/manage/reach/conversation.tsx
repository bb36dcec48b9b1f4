import { useEffect, useState } from 'preact/hooks'
import { announce } from '../../../core/announce.js'
import { api, type ReplyOf, urlOf } from '../../../core/api.js'
import { ago, clock, valueText } from '../../../core/format.js'
import { type Resource, useResource } from '../../../core/resource.js'
import { go, linkTo } from '../../../core/router.js'
import { SharedStream } from '../../../core/shared-stream.js'
import { text } from '../../../text.js'
import { Columns } from '../../../ui/columns.js'
import { Form } from '../../../ui/form.js'
import { Action, Badge, Empty, Fields, Loading, Page, Problem } from '../../../ui/parts.js'

type Channel = ReplyOf<'GET /api/workspaces/{workspace_id}/network/channels/{channel}'>['channel']
type Message =
  ReplyOf<'GET /api/workspaces/{workspace_id}/network/channels/{channel}/threads/{thread_id}/messages'>['messages'][number]

const words = text.network

/** Maximum number of messages of a conversation; the newest ones are shown. */
const MOST_SHOWN = 200
const DIRECT = 'direct:'

interface Where {
  readonly workspace_id: string
  readonly channel: string
}

/**
 * Loads messages again whenever one arrives in the channel. They have a stream of their own, because messages are not
 * daemon events.
 */
function useMessages<T>(where: Where, load: (abort: AbortSignal) => Promise<T>, deps: readonly unknown[]): Resource<T> {
  const resource = useResource(load, deps, /^(?:network|session)/)
  const { workspace_id, channel } = where
  useEffect(() => {
    const url = urlOf('/api/workspaces/{workspace_id}/network/watch', { workspace_id }, { channel, recent: 1 })
    return new SharedStream(`channel ${workspace_id} ${channel}`, () => url).follow(({ event }) => {
      if (event === 'message') resource.reload()
    })
  }, [workspace_id, channel])
  return resource
}

/** The conversations of a channel, and the form that starts one. */
export function Conversations({ where, channel }: { readonly where: Where; readonly channel: Channel }) {
  const { data, error, reload } = useMessages(
    where,
    async abort => {
      const [{ threads }, { directs }] = await Promise.all([
        api('GET /api/workspaces/{workspace_id}/network/channels/{channel}/threads', { path: { ...where } }, abort),
        api('GET /api/workspaces/{workspace_id}/network/channels/{channel}/directs', { path: { ...where } }, abort),
      ])
      return { threads, directs }
    },
    [where],
  )
  const at = (id: string) => linkTo('manage', 'network', 'channels', where.channel, id)
  const nameOf = (session: string) =>
    channel.peers?.find(({ session_id: id }) => id === session)?.display_name ?? session
  return (
    <>
      <h3>{words.threads}</h3>
      <Problem error={error} retry={reload} />
      {data?.threads.length === 0 && <Empty>{words.noThreads}</Empty>}
      <ul class="rows">
        {data?.threads.map(one => (
          <li key={one.thread_id}>
            <a class="grow wrap" href={at(one.thread_id)}>
              {one.title || one.last_message_preview || one.thread_id}
            </a>
            <span class="muted">{one.message_count}</span>
            <span class="muted">{ago(one.last_activity_at)}</span>
          </li>
        ))}
      </ul>
      {data && data.directs.length > 0 && (
        <>
          <h3>{words.directs}</h3>
          <ul class="rows">
            {data.directs.map(one => (
              <li key={one.direct_id}>
                <a class="grow wrap" href={at(`${DIRECT}${one.direct_id}`)}>
                  {nameOf(one.session_a)}, {nameOf(one.session_b)}
                </a>
                <span class="muted">{one.message_count}</span>
                <span class="muted">{ago(one.last_activity_at)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
      <h3>{words.newThread}</h3>
      <Send
        where={where}
        channel={channel}
        done={({ thread_id: id }) => {
          if (id) go('manage', 'network', 'channels', where.channel, id)
          else reload()
        }}
      />
    </>
  )
}

type Sent = ReplyOf<'POST /api/workspaces/{workspace_id}/network/send'>['message']

/** Sends a message as one of the sessions of the channel. */
function Send({
  where: { workspace_id, channel: name },
  channel,
  into,
  done,
}: {
  readonly where: Where
  readonly channel: Channel
  /** The target conversation; absent: a new thread. */
  readonly into?: { readonly thread_id: string } | { readonly direct_id: string }
  readonly done: (sent: Sent) => void
}) {
  const [refused, setRefused] = useState<NonNullable<Sent['not_woken']>>([])
  const peers = channel.peers ?? []
  const own = peers.flatMap(({ session_id: id, display_name: shown, peer_id: peer }) =>
    id ? [[id, shown ?? peer] as const] : [],
  )
  if (own.length === 0) return <p class="muted">{words.noSession}</p>
  return (
    <>
      <Form
        label={words.send}
        fields={[
          { name: 'from', label: words.from, kind: 'select', value: own[0]?.[0] ?? '', options: own },
          ...(into && 'direct_id' in into
            ? []
            : [
                {
                  ...{ name: 'to', label: words.to, kind: 'select' as const, value: '', optional: true as const },
                  options: [
                    ['', words.everybody] as const,
                    ...peers.map(({ peer_id: id, display_name: shown }) => [id, shown ?? id] as const),
                  ],
                },
              ]),
          { name: 'message', label: words.message, kind: 'area' },
        ]}
        submit={async ({ from = '', to = '', message = '' }) => {
          const { message: sent } = await api('POST /api/workspaces/{workspace_id}/network/send', {
            path: { workspace_id },
            body: {
              ...{ channel: name, session_id: from, kind: 'say', body: { text: message } },
              ...(to !== '' && { to }),
              ...into,
            },
          })
          setRefused(sent.not_woken ?? [])
          announce(words.sent)
          done(sent)
        }}
      />
      {refused.map(one => (
        <p key={one.peer_id} role="status" class="failure">
          {words.notWoken(one.peer_id, one.reason)}
        </p>
      ))}
    </>
  )
}

/** A thread or direct room of a channel, with live messages. */
export function Conversation({ where, id }: { readonly where: Where; readonly id: string }) {
  const isDirect = id.startsWith(DIRECT)
  const path = { ...where, thread_id: id, direct_id: id.slice(DIRECT.length) }
  const query = { limit: MOST_SHOWN }
  const command = isDirect
    ? `svc network directs messages ${where.channel} ${path.direct_id}`
    : `svc network threads messages ${where.channel} ${id}`
  const { data, error, reload } = useMessages(
    where,
    async abort => {
      const base = '/api/workspaces/{workspace_id}/network/channels/{channel}'
      const [{ channel }, { messages }, thread] = await Promise.all([
        api(`GET ${base}`, { path: { ...where } }, abort),
        isDirect
          ? api(`GET ${base}/directs/{direct_id}/messages`, { path, query }, abort)
          : api(`GET ${base}/threads/{thread_id}/messages`, { path, query }, abort),
        isDirect ? undefined : api(`GET ${base}/threads/{thread_id}`, { path }, abort),
      ])
      return { channel, messages, thread }
    },
    [where, id],
  )
  const cost = data?.thread?.thread.coordination_cost?.estimated_prompt_tokens
  return (
    <Columns>
      <Page
        title={data?.thread?.thread.title || (isDirect ? words.room : words.conversation)}
        command={command}
        actions={
          <a class="button" href={linkTo('manage', 'network', 'channels', where.channel)}>
            {words.back(where.channel)}
          </a>
        }
      >
        <Problem error={error} retry={reload} />
        {!data && error === undefined && <Loading />}
        {data && (
          <>
            <Fields of={[[words.cost, cost === undefined ? undefined : String(cost)]]} />
            {data.messages.length === 0 && <Empty>{words.noMessages}</Empty>}
            <ol class="exchange" aria-label={words.messages}>
              {data.messages.map(message => (
                <Entry
                  key={message.message_id}
                  message={message}
                  promote={
                    isDirect
                      ? undefined
                      : async () => {
                          await api(
                            'POST /api/workspaces/{workspace_id}/network/channels/{channel}/threads/{thread_id}/promote-task',
                            { path, body: { origin_message_id: message.message_id } },
                          )
                          announce(words.promoted)
                          reload()
                        }
                  }
                />
              ))}
            </ol>
            {(data.thread?.task_links?.length ?? 0) > 0 && (
              <>
                <h2>{words.tasks}</h2>
                <ul class="rows">
                  {data.thread?.task_links?.map(({ task_id: task }) => (
                    <li key={task}>
                      <a href={linkTo('work', task)}>{task}</a>
                    </li>
                  ))}
                </ul>
              </>
            )}
            <h2>{words.write}</h2>
            <Send
              where={where}
              channel={data.channel}
              into={isDirect ? { direct_id: path.direct_id } : { thread_id: id }}
              done={reload}
            />
          </>
        )}
      </Page>
    </Columns>
  )
}

function Entry({
  message,
  promote,
}: {
  readonly message: Message
  readonly promote: (() => Promise<unknown>) | undefined
}) {
  const said = message.text ?? message.preview_text
  return (
    <li>
      <div class="message-head">
        <strong>{message.display_name ?? message.peer_from}</strong>
        {message.peer_to && (
          <span class="muted">
            {words.to} {message.peer_to}
          </span>
        )}
        <Badge of={message.kind} />
        <time class="muted" dateTime={message.timestamp}>
          {clock(message.timestamp)}
        </time>
      </div>
      <p class="message-text">{said || valueText(message.body)}</p>
      {message.not_woken?.map(one => (
        <p key={one.peer_id} class="failure">
          {words.notWoken(one.peer_id, one.reason)}
        </p>
      ))}
      {promote && message.kind === 'say' && <Action label={words.promote} run={promote} />}
    </li>
  )
}
