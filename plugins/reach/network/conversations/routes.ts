import { cli, describe, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { created, ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import { PromoteTaskBody, PromoteTaskReply } from '../../../../schemas/network/agent.js'
import {
  DirectReply,
  InboxQuery,
  InboxReply,
  ListContainersQuery,
  ListDirectsReply,
  ListMessagesQuery,
  ListMessagesReply,
  ListThreadsReply,
  ResolveDirectBody,
  SendMessageBody,
  SendMessageReply,
  ThreadReply,
  WorkReply,
} from '../../../../schemas/network/messages.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { SessionErrors } from '../../../work/sessions/api.js'
import { TaskErrors } from '../../../work/tasks/api.js'
import { NetworkErrors, REFUSED } from '../api.js'
import type { NetworkService } from '../service.js'

const about = describe('Network')
const route = routeOf<NetworkService>(about, runsCode(false))
const origins = ['agent_session']
const base = '/api/workspaces/{workspace_id}/network'
const inWorkspace = { workspace: 'workspace_id' } as const
const CHANNEL = { name: 'channel', summary: 'name of a channel' } as const
const missing = throws(...REFERENCE_ERRORS, NetworkErrors.channel_not_found, NetworkErrors.conversation_not_found)
const speaking = throws(NetworkErrors.session_not_yours, SessionErrors.session_not_found)

/** What the creation of a task throws. */
const PROMOTING = [TaskErrors.task_invalid, TaskErrors.task_too_large, TaskErrors.tasks_stopping]

const messageColumns = [
  { of: 'timestamp~ago', header: 'When' },
  { of: 'peer_from', header: 'From' },
  { of: 'peer_to', header: 'To' },
  'kind',
  { of: 'preview_text', header: 'Message' },
] as const

/** Routes of messages, conversations and work. */
export const conversationRoutes: readonly Route<NetworkService>[] = [
  // A message wakes agents, which run code.
  routeOf<NetworkService>(about)({
    method: 'POST',
    path: `${base}/send`,
    summary: 'Send a message of a session to peers of a channel',
    body: SendMessageBody,
    replies: { 200: SendMessageReply },
    origins,
    with: [
      missing,
      speaking,
      throws(...Object.values(REFUSED)),
      throws(NetworkErrors.network_disabled, NetworkErrors.peer_absent, NetworkErrors.wake_confirmation_required),
      tool('network_send', ['network']),
    ],
    handle: async (self, { params, body, actor }) => {
      const { id } = await self.place(params.workspace_id, actor)
      return ok({ message: await self.send(id, body, actor) })
    },
  }),
  route({
    method: 'GET',
    path: `${base}/inbox`,
    summary: 'List the messages that wait for a session, the oldest first',
    query: InboxQuery,
    replies: { 200: InboxReply },
    origins,
    with: [
      throws(...REFERENCE_ERRORS),
      speaking,
      tool('network_inbox', ['network']),
      cli('network inbox', {
        ...inWorkspace,
        args: [],
        options: { session_id: 'session' },
        environment: { session_id: 'SVC_SESSION_ID' },
        view: show(
          InboxReply,
          'messages',
          [{ of: 'from', header: 'From' }, 'channel', 'kind', { of: 'id', header: 'Message' }],
          { empty: 'no message waits' },
        ),
      }),
    ],
    handle: async (self, { params, query, actor }) => {
      const { id } = await self.place(params.workspace_id, actor)
      const session = self.speaker(query.session_id, id, actor)
      return ok({ messages: self.reading.inbox(session.id).map(({ envelope }) => JSON.parse(envelope)) })
    },
  }),
  route({
    method: 'GET',
    path: `${base}/channels/{channel}/threads`,
    summary: 'List the threads of a channel',
    query: ListContainersQuery,
    replies: { 200: ListThreadsReply },
    origins,
    with: [
      missing,
      tool('network_threads', ['network']),
      cli('network threads list', {
        ...inWorkspace,
        args: [CHANNEL],
        view: show(
          ListThreadsReply,
          'threads',
          [
            { of: 'thread_id', header: 'Thread' },
            'title',
            { of: 'message_count', header: 'Messages' },
            { of: 'open_work_count', header: 'Open work' },
            { of: 'last_activity_at~ago', header: 'Active' },
          ],
          { empty: 'no threads yet' },
        ),
      }),
    ],
    handle: async (self, { params, query, actor }) => {
      const { id } = await self.place(params.workspace_id, actor)
      self.channels.found(id, params.channel)
      const { rows, page } = self.reading.containers(id, params.channel, 'thread', query)
      return ok({ threads: rows.map(row => self.reading.thread(row)), page })
    },
  }),
  route({
    method: 'GET',
    path: `${base}/channels/{channel}/threads/{thread_id}`,
    summary: 'Show a thread, what it has cost each session, and the tasks that were made of it',
    replies: { 200: ThreadReply },
    origins,
    with: [
      missing,
      tool('network_thread', ['network']),
      cli('network threads show', {
        ...inWorkspace,
        args: [CHANNEL, { name: 'thread_id', summary: 'id of a thread' }],
        view: show(ThreadReply, 'thread', [
          { of: 'thread_id', header: 'Thread' },
          'channel',
          'title',
          { of: 'opened_by_peer_id', header: 'Opened by' },
          { of: 'opened_at~time', header: 'Opened' },
          { of: 'message_count', header: 'Messages' },
          { of: 'participant_count', header: 'Peers' },
          { of: 'open_work_count', header: 'Open work' },
        ]),
      }),
    ],
    handle: async (self, { params, actor }) => {
      const { id } = await self.place(params.workspace_id, actor)
      const row = self.reading.container(id, params.channel, params.thread_id, 'thread')
      return ok({
        thread: self.reading.thread(row),
        session_costs: self.usage.costs(row),
        task_links: self.promoting.links(row),
      })
    },
  }),
  route({
    method: 'POST',
    path: `${base}/channels/{channel}/threads/{thread_id}/promote-task`,
    summary: 'Make a task of a message of a thread; it waits to be started',
    body: PromoteTaskBody,
    replies: { 201: PromoteTaskReply },
    origins,
    with: [
      missing,
      throws(NetworkErrors.network_message_not_found, NetworkErrors.tasks_unavailable, ...PROMOTING),
      tool('network_promote_task', ['network']),
      cli('network threads promote', {
        ...inWorkspace,
        args: [
          CHANNEL,
          { name: 'thread_id', summary: 'id of a thread' },
          { name: 'origin_message_id', in: 'body', summary: 'id of the message that the task is made of' },
        ],
        view: show(PromoteTaskReply, 'task', ['id', 'title', 'status', 'priority']),
      }),
    ],
    handle: async (self, { params, body, actor }) => {
      const { id } = await self.place(params.workspace_id, actor)
      const thread = self.reading.container(id, params.channel, params.thread_id, 'thread')
      return created(await self.promoting.promote(thread, body, actor))
    },
  }),
  route({
    method: 'GET',
    path: `${base}/channels/{channel}/threads/{thread_id}/messages`,
    summary: 'List the messages of a thread, the oldest first',
    query: ListMessagesQuery,
    replies: { 200: ListMessagesReply },
    origins,
    with: [
      missing,
      throws(NetworkErrors.network_message_not_found),
      tool('network_thread_messages', ['network']),
      cli('network threads messages', {
        ...inWorkspace,
        args: [CHANNEL, { name: 'thread_id', summary: 'id of a thread' }],
        view: show(ListMessagesReply, 'messages', messageColumns, { empty: 'no messages' }),
      }),
    ],
    handle: async (self, { params, query, actor }) => {
      const { id } = await self.place(params.workspace_id, actor)
      return ok(self.reading.messages(self.reading.container(id, params.channel, params.thread_id, 'thread'), query))
    },
  }),
  route({
    method: 'GET',
    path: `${base}/channels/{channel}/directs`,
    summary: 'List the direct rooms of a channel',
    query: ListContainersQuery,
    replies: { 200: ListDirectsReply },
    origins,
    with: [
      missing,
      tool('network_directs', ['network']),
      cli('network directs list', {
        ...inWorkspace,
        args: [CHANNEL],
        view: show(
          ListDirectsReply,
          'directs',
          [
            { of: 'direct_id', header: 'Room' },
            { of: 'session_a', header: 'Session' },
            { of: 'session_b', header: 'Session' },
            { of: 'message_count', header: 'Messages' },
            { of: 'last_activity_at~ago', header: 'Active' },
          ],
          { empty: 'no direct rooms yet' },
        ),
      }),
    ],
    handle: async (self, { params, query, actor }) => {
      const { id } = await self.place(params.workspace_id, actor)
      self.channels.found(id, params.channel)
      const { rows, page } = self.reading.containers(id, params.channel, 'direct', self.visible(query, actor))
      return ok({ directs: rows.map(row => self.reading.direct(row)), page })
    },
  }),
  route({
    method: 'POST',
    path: `${base}/channels/{channel}/directs/resolve`,
    summary: 'Find the direct room of a session and a peer; it is made with its first use',
    body: ResolveDirectBody,
    replies: { 200: DirectReply },
    origins,
    with: [
      missing,
      speaking,
      throws(NetworkErrors.peer_not_found, NetworkErrors.peer_absent, NetworkErrors.network_disabled),
      tool('network_direct_resolve', ['network']),
      cli('network directs open', {
        ...inWorkspace,
        args: [CHANNEL, { name: 'peer_id', in: 'body', summary: 'id of the other peer' }],
        view: show(DirectReply, 'direct', [
          { of: 'direct_id', header: 'Room' },
          { of: 'session_a', header: 'Session' },
          { of: 'session_b', header: 'Session' },
        ]),
      }),
    ],
    handle: async (self, { params, body, actor }) => {
      const { id } = await self.place(params.workspace_id, actor)
      return ok({ direct: await self.resolveDirect(id, params.channel, body, actor) })
    },
  }),
  route({
    method: 'GET',
    path: `${base}/channels/{channel}/directs/{direct_id}`,
    summary: 'Show a direct room',
    replies: { 200: DirectReply },
    origins,
    with: [
      missing,
      tool('network_direct', ['network']),
      cli('network directs show', {
        ...inWorkspace,
        args: [CHANNEL, { name: 'direct_id', summary: 'id of a direct room' }],
        view: show(DirectReply, 'direct', [
          { of: 'direct_id', header: 'Room' },
          { of: 'session_a', header: 'Session' },
          { of: 'session_b', header: 'Session' },
          { of: 'message_count', header: 'Messages' },
          { of: 'open_work_count', header: 'Open work' },
        ]),
      }),
    ],
    handle: async (self, { params, actor }) => {
      const { id } = await self.place(params.workspace_id, actor)
      return ok({ direct: self.reading.direct(self.room(id, params.channel, params.direct_id, actor)) })
    },
  }),
  route({
    method: 'GET',
    path: `${base}/channels/{channel}/directs/{direct_id}/messages`,
    summary: 'List the messages of a direct room, the oldest first',
    query: ListMessagesQuery,
    replies: { 200: ListMessagesReply },
    origins,
    with: [
      missing,
      throws(NetworkErrors.network_message_not_found),
      tool('network_direct_messages', ['network']),
      cli('network directs messages', {
        ...inWorkspace,
        args: [CHANNEL, { name: 'direct_id', summary: 'id of a direct room' }],
        view: show(ListMessagesReply, 'messages', messageColumns, { empty: 'no messages' }),
      }),
    ],
    handle: async (self, { params, query, actor }) => {
      const { id } = await self.place(params.workspace_id, actor)
      return ok(self.reading.messages(self.room(id, params.channel, params.direct_id, actor), query))
    },
  }),
  route({
    method: 'GET',
    path: `${base}/work/{work_id}`,
    summary: 'Show a piece of work that one peer does for another',
    replies: { 200: WorkReply },
    origins,
    with: [
      throws(...REFERENCE_ERRORS, NetworkErrors.work_not_found),
      tool('network_work', ['network']),
      cli('network work lookup', {
        ...inWorkspace,
        args: [{ name: 'work_id', summary: 'id of a piece of work' }],
        view: show(WorkReply, 'work', [
          { of: 'work_id', header: 'Work' },
          'state',
          'channel',
          'surface',
          'opened_at~time',
          'last_activity_at~ago',
        ]),
      }),
    ],
    handle: async (self, { params, actor }) => {
      const { id } = await self.place(params.workspace_id, actor)
      return ok({ work: self.sending.works.found(id, params.work_id) })
    },
  }),
]
