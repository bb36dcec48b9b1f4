import type * as v from 'valibot'
import { type CliView, cli, describe, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { type Actor, created, ok, type Route, routeOf } from '../../../../kernel/plugin.js'
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
  type Surface,
  ThreadReply,
  WorkReply,
} from '../../../../schemas/network/messages.js'
import { undo } from '../../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { SessionErrors } from '../../../work/sessions/api.js'
import { TaskErrors } from '../../../work/tasks/api.js'
import { NetworkErrors, REFUSED } from '../api.js'
import type { NetworkService } from '../service.js'
import type { ContainerRow } from '../tables.js'

const about = describe('Network')
const route = routeOf<NetworkService>(about, runsCode(false))
const origins = ['agent_session']
const base = '/api/workspaces/{workspace_id}/network'
const inWorkspace = { workspace: 'workspace_id' } as const
const CHANNEL = { name: 'channel', summary: 'name of a channel' } as const
const missing = throws(...REFERENCE_ERRORS, NetworkErrors.channel_not_found, NetworkErrors.conversation_not_found)
const speaking = throws(NetworkErrors.session_not_yours, SessionErrors.session_not_found)

/** Errors of creating a task. */
const PROMOTING = [TaskErrors.task_invalid, TaskErrors.task_too_large, TaskErrors.tasks_stopping]

const messageColumns = [
  { of: 'timestamp~ago', header: 'When' },
  { of: 'peer_from', header: 'From' },
  { of: 'peer_to', header: 'To' },
  'kind',
  { of: 'preview_text', header: 'Message' },
] as const

/** Differences between threads and direct rooms, which have the same routes for listing and reading. */
interface Conversation {
  readonly surface: Surface
  readonly noun: string
  readonly summary: string
  readonly many: { readonly reply: v.GenericSchema; readonly view: CliView }
  readonly one: { readonly reply: v.GenericSchema; readonly view: CliView }
  /** Limits the query to conversations that the caller may see. */
  readonly visible: (service: NetworkService, query: ListContainersQuery, actor: Actor) => ListContainersQuery
  /** @throws Fault `conversation_not_found` */
  readonly row: (
    service: NetworkService,
    workspaceId: string,
    channel: string,
    id: string,
    actor: Actor,
  ) => ContainerRow
  readonly listed: (service: NetworkService, row: ContainerRow) => object
  readonly shown: (service: NetworkService, row: ContainerRow) => object
}

/** Routes to list the conversations of a channel, show one, and read its messages. */
function readingOf(of: Conversation): Route<NetworkService>[] {
  const { surface, noun } = of
  const plural = `${surface}s` as const
  const key = `${surface}_id` as const
  const at = `${base}/channels/{channel}/${plural}` as const
  const args = [CHANNEL, { name: key, summary: `id of a ${noun}` }]
  const rowOf = async (
    service: NetworkService,
    { params, actor }: { readonly params: object; readonly actor: Actor },
  ) => {
    const { workspace_id: workspace = '', channel = '', [key]: id = '' } = params as Record<string, string>
    return of.row(service, (await service.workspaceOf(workspace, actor)).id, channel, id, actor)
  }
  return [
    route({
      method: 'GET',
      path: at,
      summary: `List the ${noun}s of a channel`,
      query: ListContainersQuery,
      replies: { 200: of.many.reply },
      origins,
      with: [
        missing,
        tool(`network_${plural}`, ['network']),
        cli(`network ${plural} list`, {
          ...inWorkspace,
          args: [CHANNEL],
          options: { session_id: 'session' },
          view: of.many.view,
        }),
      ],
      handle: async (service, { params, query, actor }) => {
        const { id } = await service.workspaceOf(params.workspace_id, actor)
        service.channels.found(id, params.channel)
        const { rows, page } = service.reading.containers(
          id,
          params.channel,
          surface,
          of.visible(service, query, actor),
        )
        return ok({ [plural]: rows.map(row => of.listed(service, row)), page })
      },
    }),
    route({
      method: 'GET',
      path: `${at}/{${key}}`,
      summary: of.summary,
      replies: { 200: of.one.reply },
      origins,
      with: [
        missing,
        tool(`network_${surface}`, ['network']),
        cli(`network ${plural} show`, { ...inWorkspace, args, view: of.one.view }),
      ],
      handle: async (service, request) => ok(of.shown(service, await rowOf(service, request))),
    }),
    route({
      method: 'GET',
      path: `${at}/{${key}}/messages`,
      summary: `List the messages of a ${noun}, the oldest first`,
      query: ListMessagesQuery,
      replies: { 200: ListMessagesReply },
      origins,
      with: [
        missing,
        throws(NetworkErrors.network_message_not_found),
        tool(`network_${surface}_messages`, ['network']),
        cli(`network ${plural} messages`, {
          ...inWorkspace,
          args,
          view: show(ListMessagesReply, 'messages', messageColumns, { empty: 'no messages' }),
        }),
      ],
      handle: async (service, request) => ok(service.reading.messages(await rowOf(service, request), request.query)),
    }),
  ]
}

const room = [
  { of: 'direct_id', header: 'Room' },
  { of: 'session_a', header: 'Session A' },
  { of: 'session_b', header: 'Session B' },
] as const

const threads = readingOf({
  surface: 'thread',
  noun: 'thread',
  summary: 'Show a thread, its cost per session, and the tasks created from it',
  many: {
    reply: ListThreadsReply,
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
  },
  one: {
    reply: ThreadReply,
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
  },
  visible: (_self, query) => query,
  row: (service, workspaceId, channel, id) => service.reading.container(workspaceId, channel, id, 'thread'),
  listed: (service, row) => service.reading.thread(row),
  shown: (service, row) => ({
    thread: service.reading.thread(row),
    session_costs: service.usage.costs(row),
    task_links: service.promoting.links(row),
  }),
})

/** An agent sees only its own direct rooms. */
const directs = readingOf({
  surface: 'direct',
  noun: 'direct room',
  summary: 'Show a direct room',
  many: {
    reply: ListDirectsReply,
    view: show(
      ListDirectsReply,
      'directs',
      [...room, { of: 'message_count', header: 'Messages' }, { of: 'last_activity_at~ago', header: 'Active' }],
      { empty: 'no direct rooms yet' },
    ),
  },
  one: {
    reply: DirectReply,
    view: show(DirectReply, 'direct', [
      ...room,
      { of: 'message_count', header: 'Messages' },
      { of: 'open_work_count', header: 'Open work' },
    ]),
  },
  visible: (service, query, actor) => service.visible(query, actor),
  row: (service, workspaceId, channel, id, actor) => service.room(workspaceId, channel, id, actor),
  listed: (service, row) => service.reading.direct(row),
  shown: (service, row) => ({ direct: service.reading.direct(row) }),
})

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
      undo({ by: 'never', why: 'a sent message cannot be withdrawn' }),
      missing,
      speaking,
      throws(...Object.values(REFUSED)),
      throws(NetworkErrors.network_disabled, NetworkErrors.peer_absent, NetworkErrors.wake_confirmation_required),
      tool('network_send', ['network'], { inside: 'bounded' }),
    ],
    handle: async (service, { params, body, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      return ok({ message: await service.send(id, body, actor) })
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
    handle: async (service, { params, query, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      const session = service.speaker(query.session_id, id, actor)
      return ok({ messages: service.reading.inbox(session.id).map(({ envelope }) => JSON.parse(envelope)) })
    },
  }),
  ...threads,
  route({
    method: 'POST',
    path: `${base}/channels/{channel}/threads/{thread_id}/promote-task`,
    summary: 'Create a task from a message of a thread; it waits to be started',
    body: PromoteTaskBody,
    replies: { 201: PromoteTaskReply },
    origins,
    with: [
      undo({ by: 'never', why: 'delete the task: svc task delete' }),
      missing,
      throws(NetworkErrors.network_message_not_found, NetworkErrors.tasks_unavailable, ...PROMOTING),
      tool('network_promote_task', ['network']),
      cli('network threads promote', {
        ...inWorkspace,
        args: [
          CHANNEL,
          { name: 'thread_id', summary: 'id of a thread' },
          { name: 'origin_message_id', in: 'body', summary: 'id of the message to create the task from' },
        ],
        view: show(PromoteTaskReply, 'task', ['id', 'title', 'status', 'priority']),
      }),
    ],
    handle: async (service, { params, body, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      const thread = service.reading.container(id, params.channel, params.thread_id, 'thread')
      return created(await service.promoting.promote(thread, body, actor))
    },
  }),
  ...directs,
  route({
    method: 'POST',
    path: `${base}/channels/{channel}/directs/resolve`,
    summary: 'Find the direct room of a session and a peer; it is created on first use',
    body: ResolveDirectBody,
    replies: { 200: DirectReply },
    origins,
    with: [
      undo({ by: 'never', why: 'a room changes nothing until it is used' }),
      missing,
      speaking,
      throws(NetworkErrors.peer_not_found, NetworkErrors.peer_absent, NetworkErrors.network_disabled),
      tool('network_direct_resolve', ['network']),
      cli('network directs open', {
        ...inWorkspace,
        args: [CHANNEL, { name: 'peer_id', in: 'body', summary: 'id of the other peer' }],
        options: { session_id: 'session' },
        view: show(DirectReply, 'direct', room),
      }),
    ],
    handle: async (service, { params, body, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      return ok({ direct: await service.resolveDirect(id, params.channel, body, actor) })
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
    handle: async (service, { params, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      return ok({ work: service.sending.works.found(id, params.work_id) })
    },
  }),
]
