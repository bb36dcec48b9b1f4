import { signal } from '@preact/signals'
import { announce } from '../../../core/announce.js'
import { api, type ReplyOf } from '../../../core/api.js'
import { ago, clock } from '../../../core/format.js'
import { useResource } from '../../../core/resource.js'
import { linkTo } from '../../../core/router.js'
import { text } from '../../../text.js'
import { Confirmed, Form } from '../../../ui/form.js'
import { List, type ListView } from '../../../ui/list.js'
import { Badge, Fields, Problem } from '../../../ui/parts.js'
import { WorkspaceChoice } from '../../../ui/workspace-choice.js'
import { filled, listed } from '../json.js'
import { Conversation, Conversations } from './conversation.js'
import { Realm, Sharing } from './realm.js'

type Channel = ReplyOf<'GET /api/workspaces/{workspace_id}/network/channels'>['channels'][number]
type Peer = ReplyOf<'GET /api/workspaces/{workspace_id}/network/peers'>['peers'][number]
type Daemon = ReplyOf<'GET /api/network/remote/peers'>['peers'][number]

const words = text.network
const { fields } = text.manage
const PARTS = ['channels', 'peers', 'daemons'] as const

/** The workspace whose channels are shown. */
const workspace = signal('')

const channels = (workspace_id: string): ListView<Channel> => ({
  name: `channels ${workspace_id}`,
  title: words.title,
  command: 'svc network channels list',
  load: async abort =>
    workspace_id === ''
      ? []
      : (await api('GET /api/workspaces/{workspace_id}/network/channels', { path: { workspace_id } }, abort)).channels,
  changes: /^(?:network|channel)/,
  id: ({ channel }) => channel,
  columns: [
    { header: words.channel, cell: ({ channel }) => channel },
    { header: words.purpose, cell: ({ purpose }) => purpose ?? '', wide: true },
    { header: words.peers, cell: ({ peer_count: count }) => count },
    { header: words.last, cell: ({ last_activity_at: time }) => ago(time) },
  ],
  empty: words.noChannels,
  create: {
    label: words.addChannel,
    command: 'svc network channels create <channel>',
    show: done => (
      <Form
        label={words.addChannel}
        fields={[
          { name: 'channel', label: words.channel },
          { name: 'purpose', label: words.purpose, optional: true },
          { name: 'agents', label: words.agents, optional: true, hint: words.agentsHint },
        ]}
        submit={async ({ channel = '', purpose, agents = '' }) => {
          await api('POST /api/workspaces/{workspace_id}/network/channels', {
            path: { workspace_id },
            body: { channel, ...filled({ purpose }), ...(agents !== '' && { agent_names: listed(agents) }) },
          })
          done(channel)
        }}
      />
    ),
  },
  detail: {
    title: ({ channel }) => channel,
    command: ({ channel }) => `svc network channels show ${channel}`,
    show: (channel, reload) => <ChannelDetails key={channel.channel} of={{ channel, workspace_id }} reload={reload} />,
  },
})

function ChannelDetails({
  of: { channel: known, workspace_id },
  reload,
}: {
  readonly of: { readonly channel: Channel; readonly workspace_id: string }
  readonly reload: () => void
}) {
  const path = { workspace_id, channel: known.channel }
  const { data, error } = useResource(
    async abort =>
      (await api('GET /api/workspaces/{workspace_id}/network/channels/{channel}', { path }, abort)).channel,
    [path],
    /^(?:network|channel)/,
  )
  return (
    <>
      <Fields
        of={[
          [words.peers, String(known.peer_count)],
          [words.messages, known.message_count === undefined ? undefined : String(known.message_count)],
          [words.last, known.last_activity_at && ago(known.last_activity_at)],
          [words.lastMessage, known.last_message_preview],
          [words.createdBy, known.created_by],
        ]}
      />
      <Sharing channel={known.channel} workspace_id={workspace_id} />
      <Form
        key={`${known.purpose} ${known.fanout_policy}`}
        label={text.manage.save}
        fields={[
          { name: 'purpose', label: words.purpose, value: known.purpose ?? '', optional: true },
          {
            name: 'fanout',
            label: words.fanout,
            kind: 'select',
            value: known.fanout_policy ?? 'all_members',
            options: (['capability_match', 'coordinator', 'all_members'] as const).map(name => [
              name,
              name.replaceAll('_', ' '),
            ]),
          },
        ]}
        submit={async ({ purpose = '', fanout }) => {
          const fanout_policy = fanout as 'capability_match' | 'coordinator' | 'all_members'
          await api('PATCH /api/workspaces/{workspace_id}/network/channels/{channel}', {
            path,
            body: { purpose, fanout_policy },
          })
          announce(text.manage.saved)
          reload()
        }}
      />
      <h3>{words.peers}</h3>
      <Problem error={error} />
      <ul class="rows">
        {data?.peers?.map(peer => (
          <li key={peer.peer_id}>
            <span class="grow">{peer.display_name ?? peer.peer_id}</span>
            <Badge of={peer.presence_state} />
          </li>
        ))}
      </ul>
      {data && <Conversations where={path} channel={data} />}
    </>
  )
}

const peers = (workspace_id: string): ListView<Peer> => ({
  name: `peers ${workspace_id}`,
  title: words.title,
  command: 'svc network peers list',
  load: async abort =>
    workspace_id === ''
      ? []
      : (await api('GET /api/workspaces/{workspace_id}/network/peers', { path: { workspace_id } }, abort)).peers,
  changes: /^(?:network|channel|session)/,
  id: ({ channel, peer_id: id }) => `${channel}/${id}`,
  columns: [
    { header: words.peer, cell: ({ display_name: name, peer_id: id }) => name ?? id, wide: true },
    { header: words.channel, cell: ({ channel }) => channel },
    { header: fields.state, cell: ({ presence_state: state }) => <Badge of={state} /> },
  ],
  empty: words.noPeers,
  detail: {
    title: ({ display_name: name, peer_id: id }) => name ?? id,
    command: ({ peer_id: id }) => `svc network peers show ${id}`,
    show: peer => (
      <Fields
        of={[
          [words.peer, peer.peer_id],
          [words.channel, peer.channel],
          [fields.state, peer.presence_state],
          [words.joined, peer.joined_at && clock(peer.joined_at)],
          [words.capabilities, peer.peer_card.capabilities.map(({ id }) => id).join(', ')],
        ]}
      />
    ),
  },
})

const daemons: ListView<Daemon> = {
  name: 'daemons',
  title: words.title,
  command: 'svc network peer keys',
  load: async abort => (await api('GET /api/network/remote/peers', {}, abort)).peers,
  changes: /^network/,
  id: ({ name }) => name,
  columns: [
    { header: fields.name, cell: ({ name }) => name, wide: true },
    { header: fields.state, cell: ({ status }) => <Badge of={status} /> },
    { header: words.seen, cell: ({ seen_at: time }) => ago(time) },
    { header: words.refused, cell: ({ refused }) => refused },
  ],
  empty: words.noDaemons,
  create: {
    label: words.addDaemon,
    command: 'svc network peer add',
    show: done => (
      <Form
        label={words.addDaemon}
        fields={[
          { name: 'name', label: fields.name },
          { name: 'key', label: words.key, hint: words.keyHint },
          { name: 'fingerprint', label: words.fingerprint },
        ]}
        submit={async ({ name = '', key = '', fingerprint = '' }) => {
          await api('POST /api/network/remote/peers', { body: { name, public_key: key, fingerprint } })
          done(name)
        }}
      />
    ),
  },
  detail: {
    title: ({ name }) => name,
    command: ({ name }) => `svc network peer remove ${name}`,
    show: (daemon, reload) => (
      <>
        <Fields
          of={[
            [fields.state, <Badge key="state" of={daemon.status} />],
            [words.daemon, daemon.daemon],
            [words.fingerprint, daemon.fingerprint],
            [words.seen, daemon.seen_at && clock(daemon.seen_at)],
            [words.clockOff, daemon.clock_is_off && words.clockIsOff],
          ]}
        />
        {daemon.status === 'trusted' && (
          <Confirmed
            label={words.revoke}
            question={words.revokeQuestion(daemon.name)}
            run={async () => {
              await api('DELETE /api/network/remote/peers/{name}', { path: { name: daemon.name } })
              reload()
            }}
          />
        )}
      </>
    ),
  },
}

export function Network({
  part = 'channels',
  selected,
  conversation,
}: {
  readonly part?: string | undefined
  readonly selected: string | undefined
  /** The id of a thread or direct room of the selected channel. */
  readonly conversation: string | undefined
}) {
  if (part === 'channels' && selected !== undefined && conversation !== undefined && workspace.value !== '')
    return <Conversation where={{ workspace_id: workspace.value, channel: selected }} id={conversation} />
  const view = part === 'daemons' ? daemons : part === 'peers' ? peers(workspace.value) : channels(workspace.value)
  return (
    // biome-ignore lint/suspicious/noExplicitAny: each list has items of its own type
    <List key={view.name} view={view as ListView<any>} path={['manage', 'network', part]} selected={selected}>
      <nav class="tabs" aria-label={words.title}>
        {PARTS.map(name => (
          <a key={name} href={linkTo('manage', 'network', name)} aria-current={part === name ? 'page' : undefined}>
            {words[name]}
          </a>
        ))}
      </nav>
      {part === 'daemons' ? (
        <Realm />
      ) : (
        <div class="filter">
          <WorkspaceChoice
            value={workspace.value}
            set={id => {
              workspace.value = id
            }}
          />
        </div>
      )}
    </List>
  )
}
