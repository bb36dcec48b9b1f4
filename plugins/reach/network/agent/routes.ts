import { cli, describe, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { accepted, ok, type Route, routeOf, streamed } from '../../../../kernel/plugin.js'
import {
  AgentChannelsReply,
  AgentMessageReply,
  AgentMessagesReply,
  AgentReceiveQuery,
  AgentReplyBody,
  AgentSendBody,
  ConversationChange,
  ConversationFrame,
  RunConversationQuery,
  WatchQuery,
} from '../../../../schemas/network/agent.js'
import { AGENT_SESSION } from '../../../access/identity/api.js'
import { undo } from '../../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { SessionErrors } from '../../../work/sessions/api.js'
import { TaskErrors } from '../../../work/tasks/api.js'
import { NetworkErrors, REFUSED } from '../api.js'
import type { NetworkService } from '../service.js'

const about = describe('Network')
const route = routeOf<NetworkService>(about, runsCode(false))
/** A message wakes agents, which run code. */
const waking = routeOf<NetworkService>(about)
/** Wakes by messages are limited in receivers, number and purpose. */
const bounded = { inside: 'bounded' } as const
/** Optional for an agent, which its socket identifies. */
const headers = { 'X-Service-Session-ID': { required: false }, 'X-Service-Agent': { required: false } }
const resuming = { 'Last-Event-ID': { required: false } }
const own = { headers, origins: [AGENT_SESSION], invalid: 422 } as const
const inChannel = throws(NetworkErrors.channel_not_found, NetworkErrors.peer_absent, SessionErrors.session_not_found)
const speaking = throws(
  ...Object.values(REFUSED).filter(({ status }) => status !== 400 && status !== 409),
  NetworkErrors.coordination_invalid,
  NetworkErrors.network_disabled,
  NetworkErrors.peer_not_found,
)

/** Routes for agents in the channels of their own sessions, and for live streams. */
export const agentRoutes: readonly Route<NetworkService>[] = [
  route({
    ...own,
    method: 'GET',
    path: '/api/agent/channels',
    summary: 'List the channels that the calling session takes part in',
    replies: { 200: AgentChannelsReply },
    with: [
      throws(SessionErrors.session_not_found),
      tool('channel_list', ['network', 'coordination']),
      cli('ch list', {
        view: show(
          AgentChannelsReply,
          'channels',
          [
            { of: 'id', header: 'Channel' },
            'purpose',
            { of: 'run_id', header: 'Run' },
            { of: 'last_activity_at~ago', header: 'Active' },
          ],
          { empty: 'the session takes part in no channel' },
        ),
      }),
    ],
    handle: (service, { actor, headers }) =>
      ok({ channels: service.agentChannels.list(service.agentChannels.caller(actor, headers)) }),
  }),
  waking({
    ...own,
    method: 'POST',
    path: '/api/agent/channels/{channel}/send',
    summary: 'Send a message of the calling session to a channel',
    body: AgentSendBody,
    replies: { 202: AgentMessageReply },
    with: [
      inChannel,
      speaking,
      undo({ by: 'never', why: 'a sent message cannot be withdrawn' }),
      tool('channel_send', ['network', 'coordination'], bounded),
    ],
    handle: async (service, { actor, headers, params, body }) => {
      const session = service.agentChannels.caller(actor, headers)
      return accepted({ message: await service.agentChannels.send(session, params.channel, body, actor) })
    },
  }),
  waking({
    ...own,
    method: 'POST',
    path: '/api/agent/channels/reply',
    summary: 'Answer a message in its conversation, addressed to the session that sent it',
    body: AgentReplyBody,
    replies: { 202: AgentMessageReply },
    with: [
      inChannel,
      speaking,
      undo({ by: 'never', why: 'a sent message cannot be withdrawn' }),
      throws(NetworkErrors.network_message_not_found),
      tool('channel_reply', ['network', 'coordination'], bounded),
    ],
    handle: async (service, { actor, headers, body }) => {
      const session = service.agentChannels.caller(actor, headers)
      return accepted({ message: await service.agentChannels.reply(session, body, actor) })
    },
  }),
  route({
    ...own,
    invalid: 400,
    method: 'GET',
    path: '/api/agent/channels/{channel}/recv',
    summary: 'Receive the unread messages of a channel for the calling session, until it acknowledges them',
    query: AgentReceiveQuery,
    replies: { 200: AgentMessagesReply },
    with: [
      inChannel,
      throws(NetworkErrors.network_message_not_found, NetworkErrors.coordination_invalid),
      tool('channel_recv', ['network', 'coordination'], {
        description:
          'Receive the messages of a channel that wait for this session, the oldest first. They come again until a later call names ' +
          'the last one as `after`. With wait: true the call waits up to 25 s for a message',
      }),
    ],
    handle: async (service, { actor, headers, params, query, signal }) => {
      const session = service.agentChannels.caller(actor, headers)
      return ok({ messages: await service.agentChannels.receive(session, params.channel, query, signal) })
    },
  }),
  route({
    method: 'GET',
    path: '/api/workspaces/{workspace_id}/network/watch',
    summary: 'Stream the messages of a channel, or of all channels of a workspace: the newest, then those that come',
    query: WatchQuery,
    headers: resuming,
    contentType: 'text/event-stream',
    replies: { 200: ConversationChange },
    frames: ConversationFrame,
    with: [throws(...REFERENCE_ERRORS, NetworkErrors.channel_not_found)],
    handle: async (service, { params, query, headers, actor, signal }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      if (query.channel !== undefined) service.channels.found(id, query.channel)
      return streamed(service.following.watch(id, query, headers['last-event-id'], signal))
    },
  }),
  route({
    method: 'GET',
    path: '/api/task-runs/{id}/conversation/stream',
    summary: 'Stream the messages of the agents of a run in its channel, until the run ends',
    query: RunConversationQuery,
    headers: resuming,
    invalid: 422,
    contentType: 'text/event-stream',
    replies: { 200: ConversationChange },
    frames: ConversationFrame,
    with: [
      throws(TaskErrors.task_run_not_found, NetworkErrors.run_not_live, NetworkErrors.network_position_unknown),
      cli('task run conversation', { args: [{ name: 'id', summary: 'id of a run' }] }),
    ],
    handle: (service, { params, query, headers, signal }) =>
      streamed(service.following.conversation(params.id, query, headers['last-event-id'], signal)),
  }),
]
