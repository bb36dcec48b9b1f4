import { announce } from '../../../core/announce.js'
import { api, type ReplyOf } from '../../../core/api.js'
import { clock } from '../../../core/format.js'
import { useResource } from '../../../core/resource.js'
import { linkTo } from '../../../core/router.js'
import { text } from '../../../text.js'
import { Confirmed, Form } from '../../../ui/form.js'
import { Action, Badge, Empty, Fields, Problem } from '../../../ui/parts.js'
import { filled, listed } from '../json.js'

type Remote = ReplyOf<'GET /api/network/remote'>['remote']

const words = text.network
const { fields } = text.manage

/** The realm of this daemon, its key and its shared channels, above the list of the other daemons. */
export function Realm() {
  const { data, error, reload } = useResource(
    async abort => {
      const [{ remote }, { identity }] = await Promise.all([
        api('GET /api/network/remote', {}, abort),
        api('GET /api/network/remote/identity', {}, abort),
      ])
      return { remote, identity }
    },
    [],
    /^network/,
  )
  if (!data) return <Problem error={error} retry={reload} />
  const { remote, identity } = data
  return (
    <section aria-label={words.realm}>
      <Fields
        of={[
          [words.connection, <Badge key="state" of={remote.state} />],
          [words.realm, remote.realm],
          [words.servers, remote.servers.join(', ')],
          [fields.error, remote.error],
          [words.fingerprint, <code key="own">{identity.fingerprint}</code>],
          [words.key, <code key="key">{identity.public_key}</code>],
        ]}
      />
      {remote.state === 'off' ? <Join reload={reload} /> : <Joined remote={remote} reload={reload} />}
      <Offers remote={remote} />
    </section>
  )
}

function Join({ reload }: { readonly reload: () => void }) {
  return (
    <details class="more">
      <summary>{words.join}</summary>
      <Form
        label={words.joinLabel}
        fields={[
          { name: 'url', label: words.url, hint: words.urlHint },
          { name: 'realm', label: words.realm, hint: words.realmHint },
          { name: 'credentials', label: words.credentials, optional: true, hint: words.credentialsHint },
          { name: 'ca', label: words.ca, optional: true, hint: words.caHint },
        ]}
        submit={async ({ url = '', realm = '', credentials, ca }) => {
          const body = { url, realm, ...filled({ credentials_ref: credentials, ca }) }
          const { remote } = await api('POST /api/network/remote/join', { body })
          // The daemon retries, and the connection shows the error.
          announce(remote.error ?? words.joinedRealm)
          reload()
        }}
      />
    </details>
  )
}

function Joined({ remote, reload }: { readonly remote: Remote; readonly reload: () => void }) {
  return (
    <>
      <div class="actions">
        <Confirmed
          label={words.leave}
          question={words.leaveQuestion}
          run={async () => {
            await api('POST /api/network/remote/leave')
            reload()
          }}
        />
      </div>
      {remote.channels.length > 0 && (
        <>
          <h2>{words.shared}</h2>
          <ul class="rows">
            {remote.channels.map(({ channel, shared_at: at }) => (
              <li key={channel}>
                <a class="grow" href={linkTo('manage', 'network', 'channels', channel)}>
                  {channel}
                </a>
                <span class="muted">{clock(at)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
      {remote.refusals.length > 0 && (
        <>
          <h2>{words.refusals}</h2>
          <ul class="rows">
            {remote.refusals.map(one => (
              <li key={`${one.peer} ${one.reason_code} ${one.channel}`}>
                <span class="grow">{one.peer}</span>
                <Badge of={one.reason_code} />
                <span class="muted">
                  {one.count} · {clock(one.last_at)}
                </span>
                <p class="muted wrap">{one.message}</p>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  )
}

/** Offers of tasks between daemons, and the agent that works on accepted ones. */
function Offers({ remote }: { readonly remote: Remote }) {
  const { data, error, reload } = useResource(
    async abort => {
      const [{ offers, accepts }, { agents }, { workspaces }] = await Promise.all([
        api('GET /api/network/remote/offers', {}, abort),
        api('GET /api/agents', {}, abort),
        api('GET /api/workspaces', {}, abort),
      ])
      return { offers, accepts, agents: [...new Set(agents.map(({ name }) => name))], workspaces }
    },
    [remote.state],
    /^(?:network|task)/,
  )
  if (!data) return <Problem error={error} retry={reload} />
  const { accepts } = data
  if (remote.state === 'off' && data.offers.length === 0 && !accepts) return null
  return (
    <>
      <h2>{words.offers}</h2>
      <Fields of={[[words.accepts, accepts && [accepts.agent, accepts.workspace, ...accepts.peers].join(', ')]]} />
      {accepts ? (
        <Confirmed
          label={words.refuse}
          question={words.refuseQuestion}
          run={async () => {
            await api('DELETE /api/network/remote/acceptance')
            reload()
          }}
        />
      ) : (
        <details class="more">
          <summary>{words.accept}</summary>
          <p class="muted">{words.acceptHint}</p>
          <Form
            label={words.accept}
            fields={[
              {
                ...{ name: 'agent', label: fields.agent, kind: 'select', value: data.agents[0] ?? '' },
                options: data.agents.map(name => [name, name] as const),
              },
              {
                ...{ name: 'workspace', label: text.jobEditor.workspace, kind: 'select' },
                value: data.workspaces[0]?.id ?? '',
                options: data.workspaces.map(({ id, name, root_dir: folder }) => [id, name || folder] as const),
              },
              { name: 'peers', label: words.fromPeers, optional: true, hint: words.fromPeersHint },
            ]}
            submit={async ({ agent = '', workspace = '', peers = '' }) => {
              const body = { agent, workspace, ...(peers !== '' && { peers: listed(peers) }) }
              await api('PUT /api/network/remote/acceptance', { body })
              reload()
            }}
          />
        </details>
      )}
      {data.offers.length === 0 && <Empty>{words.noOffers}</Empty>}
      <ul class="rows">
        {data.offers.map(one => (
          <li key={`${one.offer_id} ${one.attempt}`}>
            {one.task_id ? (
              <a class="grow" href={linkTo('work', one.task_id)}>
                {one.title}
              </a>
            ) : (
              <span class="grow">{one.title}</span>
            )}
            <span class="muted">{[one.direction, one.peer].filter(Boolean).join(' ')}</span>
            <Badge of={one.state} />
            {one.error && <p class="failure wrap">{one.error}</p>}
            {one.direction === 'given' && one.task_id && (one.state === 'offered' || one.state === 'taken') && (
              <Confirmed
                label={words.withdraw}
                question={words.withdrawQuestion(one.title)}
                run={async () => {
                  const path = { task_id: one.task_id ?? '' }
                  await api('DELETE /api/network/remote/offers/{task_id}', { path })
                  reload()
                }}
              />
            )}
          </li>
        ))}
      </ul>
    </>
  )
}

/** Whether a channel is shared with the realm, and a button that changes it. */
export function Sharing({ channel, workspace_id }: { readonly channel: string; readonly workspace_id: string }) {
  const { data, error, reload } = useResource(
    async abort => (await api('GET /api/network/remote', {}, abort)).remote,
    [],
    /^network/,
  )
  if (!data) return <Problem error={error} retry={reload} />
  const isShared = data.channels.some(one => one.channel === channel && one.workspace_id === workspace_id)
  if (isShared)
    return (
      <>
        <p>{words.isShared}</p>
        <Confirmed
          label={words.unshare}
          question={words.unshareQuestion(channel)}
          run={async () => {
            await api('DELETE /api/network/remote/channels/{channel}', { path: { channel } })
            reload()
          }}
        />
      </>
    )
  if (data.state === 'off') return null
  return (
    <div class="actions">
      <Action
        label={words.share}
        run={async () => {
          await api('POST /api/network/remote/channels', { body: { channel, workspace: workspace_id } })
          reload()
        }}
      />
    </div>
  )
}
