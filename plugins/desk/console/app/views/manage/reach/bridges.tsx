import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { announce } from '../../../core/announce.js'
import { api, type ReplyOf, urlOf } from '../../../core/api.js'
import { ago, clock, valueText } from '../../../core/format.js'
import { useResource } from '../../../core/resource.js'
import { go, linkTo } from '../../../core/router.js'
import { SharedStream } from '../../../core/shared-stream.js'
import { text } from '../../../text.js'
import { Confirmed, Form } from '../../../ui/form.js'
import { List, type ListView } from '../../../ui/list.js'
import { Action, Badge, Code, Empty, Fields, Problem } from '../../../ui/parts.js'
import { addressOf, type Bridge, bindSecret, EditBridge, NewBridge, useProviders } from './bridge-form.js'

type Bridges = ReplyOf<'GET /api/bridges'>
type Health = NonNullable<Bridges['bridge_health'][string]>

const words = text.bridges
const { fields } = text.manage

/** Maximum number of bridges whose health one stream reports. */
const MOST_FOLLOWED = 100

/** The health of bridges by id, first from the list, then from the stream. */
const health = signal<Readonly<Record<string, Health>>>({})
const followed = signal('')

const statusOf = ({ id, status }: Bridge) => health.value[id]?.status ?? status

/** @param edits whether the details of a bridge are its editor */
const viewOf = (edits: boolean): ListView<Bridge> => ({
  name: 'bridges',
  title: words.title,
  command: 'svc bridge list',
  load: async abort => {
    const { bridges, bridge_health: known } = await api('GET /api/bridges', { query: { limit: 200 } }, abort)
    health.value = known
    followed.value = bridges
      .slice(0, MOST_FOLLOWED)
      .map(({ id }) => id)
      .join(',')
    return bridges
  },
  changes: /^(?:bridge|extension|plugin)\./,
  id: ({ id }) => id,
  columns: [
    { header: fields.name, cell: ({ display_name: name }) => name, wide: true },
    { header: words.platform, cell: ({ platform }) => platform },
    { header: fields.state, cell: bridge => <Badge of={statusOf(bridge)} /> },
    { header: words.backlog, cell: ({ id }) => health.value[id]?.delivery_backlog ?? '–' },
  ],
  empty: words.none,
  create: {
    label: words.add,
    command: 'svc bridge setup',
    show: done => <NewBridge done={done} />,
  },
  detail: {
    title: ({ display_name: name }) => name,
    command: ({ id }) => (edits ? `svc bridge update ${id}` : `svc bridge get ${id}`),
    show: (bridge, reload) =>
      edits ? (
        <EditBridge
          key={bridge.id}
          bridge={bridge}
          done={() => {
            reload()
            go('manage', 'bridges', bridge.id)
          }}
        />
      ) : (
        <Details key={bridge.id} bridge={bridge} reload={reload} />
      ),
  },
})

export function Bridges({ selected, edits }: { readonly selected: string | undefined; readonly edits: boolean }) {
  const ids = followed.value
  useEffect(() => {
    if (ids === '') return
    const url = urlOf('/api/bridges/health/stream', {}, { bridge_ids: ids })
    return new SharedStream(`bridges ${ids}`, () => url).follow(({ data }) => {
      const { bridge_health: changed } = data as { bridge_health?: Record<string, Health> }
      if (changed) health.value = { ...health.value, ...changed }
    })
  }, [ids])
  return <List view={viewOf(edits)} path={['manage', 'bridges']} selected={selected} />
}

function Details({ bridge, reload }: { readonly bridge: Bridge; readonly reload: () => void }) {
  const { id } = bridge
  const now = health.value[id]
  const at = { path: { id } }
  const isOwn = bridge.source !== 'package'
  const { listen_addr: listens, public_url: url } = (bridge.provider_config ?? {}) as Record<string, unknown>
  const webhook = bridge.webhook_public_url ?? (typeof url === 'string' ? url : undefined)
  return (
    <>
      <div class="actions">
        <Action
          label={bridge.enabled ? text.automation.disable : text.automation.enable}
          run={async () => {
            await (bridge.enabled
              ? api('POST /api/bridges/{id}/disable', at)
              : api('POST /api/bridges/{id}/enable', at))
            reload()
          }}
        />
        {bridge.enabled && (
          <Action
            label={words.restart}
            run={async () => {
              await api('POST /api/bridges/{id}/restart', at)
              announce(words.restarted)
              reload()
            }}
          />
        )}
        {isOwn && (
          <a class="button" href={linkTo('manage', 'bridges', id, 'edit')}>
            {words.edit}
          </a>
        )}
      </div>
      {!isOwn && <p class="muted">{words.packaged}</p>}
      <h3>{fields.health}</h3>
      <Fields
        of={[
          [fields.state, <Badge key="state" of={statusOf(bridge)} />],
          [words.backlog, now && String(now.delivery_backlog)],
          [words.failed, now && String(now.delivery_failures_total)],
          [words.dropped, now && String(now.delivery_dropped_total)],
          [words.conversations, now && String(now.route_count)],
          [fields.error, now?.last_error],
          [words.delivered, now?.last_success_at && ago(now.last_success_at)],
          [fields.reason, now?.degradation?.message ?? now?.degradation?.reason],
        ]}
      />
      {now?.diagnostics?.map(({ kind, message, next_action: next }) => (
        <Problem key={`${kind} ${message}`} error={next ? `${message} ${next}` : message} />
      ))}
      <Fields
        of={[
          [words.platform, bridge.platform],
          [words.extension, bridge.extension_name],
          [words.scope, bridge.workspace_id ?? bridge.scope],
          [words.listens, typeof listens === 'string' && <code key="listens">{listens}</code>],
          [words.webhook, webhook && <code key="webhook">{webhook}</code>],
        ]}
      />
      <Checks bridge={bridge} hasWebhook={webhook !== undefined} />
      <Secrets bridge={bridge} />
      <Deliveries id={id} />
      <Rooms id={id} />
    </>
  )
}

/** The address for a route, or for the name of a room or person. */
async function targetOf(id: string, name: string) {
  const known = addressOf(name)
  if (known) return known
  const { result, diagnostic } = await api('POST /api/bridges/{id}/resolve', { path: { id }, body: { name } })
  const found = result.match && addressOf(result.match.canonical_route)
  if (!found) throw new Error(diagnostic?.message ?? words.unknownTarget)
  return found
}

interface Finding {
  readonly check: string
  readonly status: string
  readonly remediation: string
}

/** A button that verifies the bridge, and one that registers its webhook. */
function Checks({ bridge: { id, platform }, hasWebhook }: { readonly bridge: Bridge; readonly hasWebhook: boolean }) {
  const [checks, setChecks] = useState<readonly Finding[]>([])
  const [manifest, setManifest] = useState<string>()
  const at = { path: { id } }
  return (
    <>
      <div class="actions">
        <Action
          label={words.verify}
          tone="primary"
          run={async () => {
            setChecks((await api('POST /api/bridges/{id}/verify', at)).checks)
            announce(words.verified)
          }}
        />
        {hasWebhook && (
          <Action
            label={words.registerWebhook}
            run={async () => {
              const { status, remediation } = await api('POST /api/bridges/{id}/webhook/register', at)
              setChecks([{ check: words.registerWebhook, status, remediation }])
            }}
          />
        )}
        {platform === 'slack' && (
          <Action
            label={words.manifest}
            run={async () => {
              const query = { instance: id }
              const reply = await api('GET /api/bridges/providers/{platform}/manifest', { path: { platform }, query })
              setManifest(valueText(reply.manifest))
            }}
          />
        )}
      </div>
      {checks.length > 0 && (
        <ul class="rows" aria-label={words.checks}>
          {checks.map(({ check, status, remediation }) => (
            <li key={check}>
              <Badge of={status} />
              <span class="grow">{check}</span>
              {remediation !== '' && <p class="muted wrap">{remediation}</p>}
            </li>
          ))}
        </ul>
      )}
      {manifest !== undefined && <Code label={words.manifest}>{manifest}</Code>}
    </>
  )
}

/** The secrets that the adapter needs: whether each is set, a field for its value, and a button that deletes it. */
function Secrets({ bridge: { id, platform, extension_name: extension } }: { readonly bridge: Bridge }) {
  const providers = useProviders()
  const bindings = useResource(
    async abort => (await api('GET /api/bridges/{id}/secret-bindings', { path: { id } }, abort)).bindings,
    [id],
    /^bridge/,
  )
  if (!bindings.data || !providers.data)
    return <Problem error={bindings.error ?? providers.error} retry={bindings.reload} />
  const slots =
    providers.data.find(one => one.platform === platform && one.extension_name === extension)?.secret_slots ?? []
  if (slots.length === 0) return null
  const isSet = (slot: string) => bindings.data?.some(({ binding_name: name }) => name === slot) ?? false
  return (
    <>
      <h3>{words.secrets}</h3>
      {slots.map(({ name, description }) => (
        <div key={name} class="secret">
          <Form
            label={words.set(name)}
            fields={[
              {
                ...{ name: 'value', label: isSet(name) ? words.isSet(name) : name, kind: 'password' },
                ...(description && { hint: description }),
              },
            ]}
            submit={async ({ value = '' }) => {
              await bindSecret(id, name, value)
              announce(words.isSet(name))
              bindings.reload()
            }}
          />
          {isSet(name) && (
            <Confirmed
              label={words.unbind(name)}
              question={words.unbindQuestion(name)}
              run={async () => {
                await api('DELETE /api/bridges/{id}/secret-bindings/{binding_name}', {
                  path: { id, binding_name: name },
                })
                bindings.reload()
              }}
            />
          )}
        </div>
      ))}
    </>
  )
}

/** Maximum number of listed rooms and persons; others are found by name. */
const MOST_TARGETS = 100

/** The conversations of a bridge with their sessions, and the rooms and persons that the platform reported. */
function Rooms({ id }: { readonly id: string }) {
  const { data, error, reload } = useResource(
    async abort => {
      const [{ routes }, { targets }] = await Promise.all([
        api('GET /api/bridges/{id}/routes', { path: { id } }, abort),
        api('GET /api/bridges/{id}/targets', { path: { id }, query: { limit: MOST_TARGETS } }, abort),
      ])
      return { routes, targets }
    },
    [id],
    /^bridge/,
  )
  if (!data) return <Problem error={error} retry={reload} />
  return (
    <>
      <h3>{words.routes}</h3>
      {data.routes.length === 0 && <Empty>{words.noRoutes}</Empty>}
      <ul class="rows">
        {data.routes.map(one => (
          <li key={one.routing_key_hash}>
            <a class="grow wrap" href={linkTo('sessions', one.session_id)}>
              {[one.group_id, one.thread_id, one.peer_id].filter(Boolean).join(' / ')}
            </a>
            <span class="muted">{one.agent_name}</span>
            <span class="muted">{ago(one.last_activity_at)}</span>
          </li>
        ))}
      </ul>
      <h3>{words.targets}</h3>
      {data.targets.length === 0 && <Empty>{words.noTargets}</Empty>}
      <ul class="rows">
        {data.targets.map(one => (
          <li key={one.canonical_route}>
            <span class="grow wrap">{one.display_name}</span>
            <span class="muted">{one.qualifier ?? one.target_type}</span>
            <code class="wrap">{one.canonical_route}</code>
          </li>
        ))}
      </ul>
    </>
  )
}

/** States of messages without a confirmed arrival; a person may discard them. */
const OPEN = ['failed', 'prepared', 'queued', 'unknown_after_send']

/** Sends a test message, and lists the sent messages. */
function Deliveries({ id }: { readonly id: string }) {
  const [sent, setSent] = useState<string>()
  const { data, error, reload } = useResource(
    async abort =>
      (await api('GET /api/bridges/{id}/deliveries', { path: { id }, query: { limit: 20 } }, abort)).deliveries,
    [id],
    /^bridge/,
  )
  if (!data) return <Problem error={error} retry={reload} />
  return (
    <>
      <h3>{words.test}</h3>
      <Form
        label={words.send}
        fields={[
          { name: 'message', label: words.message },
          { name: 'to', label: words.to, optional: true, hint: words.toHint },
        ]}
        submit={async ({ message = '', to = '' }) => {
          setSent(undefined)
          const target = to === '' ? undefined : await targetOf(id, to)
          const body = { message, ...(target && { target }) }
          const reply = await api('POST /api/bridges/{id}/send-test', { path: { id }, body })
          if (reply.error) throw new Error(reply.error.message)
          announce(words.sent)
          setSent(reply.remote_message_id ?? reply.delivery_id)
          reload()
        }}
      />
      {sent !== undefined && (
        <p role="status">
          {words.sent} <code class="wrap">{sent}</code>
        </p>
      )}
      <h3>{words.messages}</h3>
      {data.length === 0 && <Empty>{words.noMessages}</Empty>}
      <ul class="rows">
        {data.map(one => (
          <li key={one.id}>
            <Badge of={one.state} />
            <span class="muted">{clock(one.created_at)}</span>
            {one.state === 'failed' && (
              <Action
                label={words.resend}
                run={async () => {
                  await api('POST /api/bridges/{id}/deliveries/{delivery_id}/resend', {
                    path: { id, delivery_id: one.id },
                  })
                  reload()
                }}
              />
            )}
            {OPEN.includes(one.state) && (
              <Confirmed
                label={words.discard}
                question={words.discardQuestion}
                run={async () => {
                  await api('POST /api/bridges/{id}/deliveries/{delivery_id}/discard', {
                    path: { id, delivery_id: one.id },
                  })
                  reload()
                }}
              />
            )}
            {one.reason && <p class="failure wrap">{one.reason}</p>}
            <p class="clip">{one.text}</p>
          </li>
        ))}
      </ul>
    </>
  )
}
