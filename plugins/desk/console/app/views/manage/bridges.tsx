import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf, urlOf } from '../../core/api.js'
import { ago, clock } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { SharedStream } from '../../core/shared-stream.js'
import { text } from '../../text.js'
import { Form } from '../../ui/form.js'
import { List, type ListView } from '../../ui/list.js'
import { Action, Badge, Empty, Fields, Loading, Problem } from '../../ui/parts.js'

type Bridges = ReplyOf<'GET /api/bridges'>
type Bridge = Bridges['bridges'][number]
type Health = NonNullable<Bridges['bridge_health'][string]>

const words = text.bridges
const { fields } = text.manage

/** Bridges whose health one stream follows at most. */
const MOST_FOLLOWED = 100

/** The health of bridges by id: as it was read with the list, then as the stream reports it. */
const health = signal<Readonly<Record<string, Health>>>({})
const followed = signal('')

const statusOf = ({ id, status }: Bridge) => health.value[id]?.status ?? status

const view: ListView<Bridge> = {
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
    show: done => <Create done={done} />,
  },
  detail: {
    title: ({ display_name: name }) => name,
    command: ({ id }) => `svc bridge get ${id}`,
    show: (bridge, reload) => <Details key={bridge.id} bridge={bridge} reload={reload} />,
  },
}

export function Bridges({ selected }: { readonly selected: string | undefined }) {
  const ids = followed.value
  useEffect(() => {
    if (ids === '') return
    const url = urlOf('/api/bridges/health/stream', {}, { bridge_ids: ids })
    return new SharedStream(`bridges ${ids}`, () => url).follow(({ data }) => {
      const { bridge_health: changed } = data as { bridge_health?: Record<string, Health> }
      if (changed) health.value = { ...health.value, ...changed }
    })
  }, [ids])
  return <List view={view} path={['manage', 'bridges']} selected={selected} />
}

function Create({ done }: { readonly done: (id?: string) => void }) {
  const { data, error, reload } = useResource(
    async abort => (await api('GET /api/bridges/providers', {}, abort)).providers,
    [],
    /^extension/,
  )
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  if (data.length === 0) return <Empty command="svc extension search">{words.noProvider}</Empty>
  return (
    <Form
      label={words.add}
      fields={[
        {
          name: 'platform',
          label: words.platform,
          kind: 'select',
          value: data[0]?.platform ?? '',
          options: data.map(({ platform, display_name: name }) => [platform, name] as const),
        },
        { name: 'name', label: fields.name },
        { name: 'enabled', label: words.enableNow, kind: 'check' },
      ]}
      submit={async ({ platform = '', name = '', enabled }) => {
        const extension_name = data.find(one => one.platform === platform)?.extension_name ?? ''
        const { bridge } = await api('POST /api/bridges', {
          body: {
            ...{ display_name: name, platform, extension_name, scope: 'global', enabled: enabled === 'yes' },
            routing_policy: {},
          },
        })
        done(bridge.id)
      }}
    />
  )
}

function Details({ bridge, reload }: { readonly bridge: Bridge; readonly reload: () => void }) {
  const { id } = bridge
  const now = health.value[id]
  const at = { path: { id } }
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
      </div>
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
        ]}
      />
      <Secrets bridge={bridge} />
      <h3>{words.test}</h3>
      <Form
        label={words.send}
        fields={[{ name: 'message', label: words.message }]}
        submit={async ({ message = '' }) => {
          const reply = await api('POST /api/bridges/{id}/send-test', { ...at, body: { message } })
          if (reply.error) throw new Error(reply.error.message)
          announce(words.sent)
        }}
      />
      <Deliveries id={id} />
    </>
  )
}

/** The secrets that the adapter needs: whether each is set, and a field that sets it. */
function Secrets({ bridge: { id, platform } }: { readonly bridge: Bridge }) {
  const { data, error, reload } = useResource(
    async abort => {
      const [{ bindings }, { providers }] = await Promise.all([
        api('GET /api/bridges/{id}/secret-bindings', { path: { id } }, abort),
        api('GET /api/bridges/providers', {}, abort),
      ])
      return { bindings, slots: providers.find(one => one.platform === platform)?.secret_slots ?? [] }
    },
    [id],
    /^bridge/,
  )
  if (!data) return <Problem error={error} retry={reload} />
  if (data.slots.length === 0) return null
  return (
    <>
      <h3>{words.secrets}</h3>
      {data.slots.map(({ name, description }) => (
        <Form
          key={name}
          label={words.set(name)}
          fields={[
            {
              name: 'value',
              label: data.bindings.some(one => one.binding_name === name) ? words.isSet(name) : name,
              kind: 'password',
              ...(description && { hint: description }),
            },
          ]}
          submit={async ({ value = '' }) => {
            await api('PUT /api/bridges/{id}/secret-bindings/{binding_name}', {
              path: { id, binding_name: name },
              body: { kind: 'secret', secret_ref: `vault:bridges/${id}/${name}`, secret_value: value },
            })
            reload()
          }}
        />
      ))}
    </>
  )
}

function Deliveries({ id }: { readonly id: string }) {
  const { data, error, reload } = useResource(
    async abort =>
      (await api('GET /api/bridges/{id}/deliveries', { path: { id }, query: { limit: 20 } }, abort)).deliveries,
    [id],
    /^bridge/,
  )
  if (!data) return <Problem error={error} retry={reload} />
  return (
    <>
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
            <p class="clip">{one.text}</p>
          </li>
        ))}
      </ul>
    </>
  )
}
