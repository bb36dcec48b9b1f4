import { useRef } from 'preact/hooks'
import { announce } from '../../../core/announce.js'
import { api, type ReplyOf } from '../../../core/api.js'
import { useResource } from '../../../core/resource.js'
import { text } from '../../../text.js'
import { Form, type FormField, type Values } from '../../../ui/form.js'
import { Empty, Loading, Problem } from '../../../ui/parts.js'
import { memberOf, schemaForm } from '../../../ui/schema-form.js'
import { listed } from '../json.js'

export type Bridge = ReplyOf<'GET /api/bridges'>['bridges'][number]
export type Provider = ReplyOf<'GET /api/bridges/providers'>['providers'][number]
type Config = Readonly<Record<string, unknown>>
type Defaults = NonNullable<Bridge['delivery_defaults']>

const words = text.bridges
const { fields } = text.manage

/** Configuration members that the daemon itself reads, for every platform. */
const OWN = ['dm', 'group', 'approvers', 'routing']
const PROGRESS = ['off', 'new', 'all', 'verbose'] as const

interface Address {
  readonly peer_id?: string
  readonly group_id?: string
  readonly thread_id?: string
}
type Named = { readonly [K in keyof Address]: string | undefined }

/** The address in a route, in the daemon's notation: `group:ops/thread:12`. */
export function addressOf(route: string): Address | undefined {
  const [, type, id = '', thread] = /^(peer|group):([^/\s]+)(?:\/thread:([^/\s]+))?$/.exec(route) ?? []
  if (type === undefined) return undefined
  try {
    const below = thread === undefined ? {} : { thread_id: decodeURIComponent(thread) }
    const chat = decodeURIComponent(id)
    return type === 'peer' ? { peer_id: chat, ...below } : { group_id: chat, ...below }
  } catch {
    return undefined
  }
}

function routeOf({ peer_id: peer, group_id: group, thread_id: thread }: Named): string {
  const escaped = (part: string) => part.replace(/[/%\s]/g, encodeURIComponent)
  if (peer === undefined && group === undefined) return ''
  const chat = group === undefined ? `peer:${escaped(peer ?? '')}` : `group:${escaped(group)}`
  return thread === undefined ? chat : `${chat}/thread:${escaped(thread)}`
}

export function useProviders() {
  return useResource(
    async abort => (await api('GET /api/bridges/providers', {}, abort)).providers,
    [],
    /^(?:extension|plugin)/,
  )
}

const member = (config: Config, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((at, name) => (Object(at) as Config)[name], config)
const lines = (value: unknown): string => (Array.isArray(value) ? value.join('\n') : '')

/** The fields for the platform's settings and the general ones. All names begin with `prefix`. */
function settingsOf(provider: Provider | undefined, config: Config, prefix: string, applies?: FormField['applies']) {
  const source = provider?.config_schema?.schema
  const form = schemaForm(source, config, { prefix: `${prefix}config.`, without: OWN })
  const persons = memberOf(source, 'dm', 'allow_user_ids').description
  const common: readonly FormField[] = [
    {
      ...{ name: `${prefix}persons`, label: words.persons, kind: 'area', optional: true },
      value: lines(member(config, 'dm', 'allow_user_ids')),
      hint: `${typeof persons === 'string' ? persons : words.personsHint} ${text.schemaForm.lines}`,
    },
    {
      ...{ name: `${prefix}approvers`, label: words.approvers, kind: 'area', optional: true, more: true },
      ...{ value: lines(member(config, 'approvers', 'user_ids')), hint: words.personsHint },
    },
    {
      ...{ name: `${prefix}group`, label: words.groups, kind: 'select', optional: true, more: true },
      value: String(member(config, 'group', 'reply') ?? 'addressed'),
      options: Object.entries(words.groupReplies),
    },
  ]
  return {
    fields: [
      ...form.fields.map(field => (field.optional ? ({ ...field, more: true } as const) : field)),
      ...common,
    ].map(field => ({ ...field, ...(applies && { applies }) })),
    configOf(values: Values): Record<string, unknown> {
      const made = form.objectOf(values)
      const set = (name: string, key: string, value: unknown) => {
        const { [key]: _, ...rest } = Object(made[name]) as Record<string, unknown>
        const all = { ...rest, ...(value !== undefined && { [key]: value }) }
        if (Object.keys(all).length > 0) made[name] = all
        else delete made[name]
      }
      const ids = (name: string) => {
        const all = listed(values[`${prefix}${name}`] ?? '')
        return all.length > 0 ? all : undefined
      }
      set('dm', 'allow_user_ids', ids('persons'))
      set('approvers', 'user_ids', ids('approvers'))
      const reply = values[`${prefix}group`]
      set('group', 'reply', reply === 'all' ? reply : undefined)
      return made
    },
  }
}

const directField = (value: string): FormField => ({
  ...{ name: 'direct', label: words.direct, kind: 'select', value, more: true, optional: true },
  options: Object.entries(words.directs),
})

const sharedField = (value: string): FormField => ({
  ...{ name: 'shared', label: words.shared, kind: 'select', value, more: true, optional: true },
  options: Object.entries(words.sharedBy),
})

const routingOf = ({ shared = 'room' }: Values) => ({
  include_peer: shared === 'person',
  include_group: true,
  include_thread: shared === 'thread',
})

const directOf = ({ direct = 'allowlist' }: Values) => direct as 'open' | 'allowlist' | 'pairing'

/** Creates a bridge with its secrets, as `svc bridge setup` does. */
export function NewBridge({ done }: { readonly done: (id?: string) => void }) {
  const providers = useProviders()
  const workspaces = useResource(async abort => (await api('GET /api/workspaces', {}, abort)).workspaces, [])
  /** The bridge of an attempt that failed at a secret. The next attempt reuses it. */
  const made = useRef<{ readonly id: string; readonly provider: Provider } | undefined>(undefined)
  const error = providers.error ?? workspaces.error
  const [all, places] = [providers.data, workspaces.data]
  if (!all || !places) return error === undefined ? <Loading /> : <Problem error={error} retry={providers.reload} />
  if (all.length === 0) return <Empty command="svc extension search">{words.noProvider}</Empty>
  const parts = all.map((provider, n) => {
    const applies = (values: Values) => values.provider === String(n)
    return { provider, ...settingsOf(provider, {}, `${n}.`, applies), secrets: secretFields(provider, n, applies) }
  })
  return (
    <Form
      label={words.add}
      fields={[
        {
          ...{ name: 'provider', label: words.platform, kind: 'select', value: '0' },
          options: all.map(({ display_name: name }, n) => [String(n), name] as const),
        },
        { name: 'name', label: fields.name },
        {
          ...{ name: 'workspace', label: words.workspace, kind: 'select', value: places[0]?.id ?? '' },
          options: [
            ...places.map(({ id, name, root_dir: folder }) => [id, name || folder] as const),
            ['', words.noWorkspace],
          ],
        },
        ...parts.flatMap(({ fields: own, secrets }) => [...own, ...secrets]),
        sharedField('room'),
        directField('allowlist'),
        { name: 'enabled', label: words.enableNow, kind: 'check' },
      ]}
      submit={async values => {
        const part = parts[Number(values.provider)]
        if (!part) return
        const { provider, configOf } = part
        const { workspace = '', name = '', enabled } = values
        const settings = {
          ...{ display_name: name, dm_policy: directOf(values) },
          routing_policy:
            workspace === ''
              ? { include_peer: true, include_group: false, include_thread: false }
              : routingOf({ shared: values.shared ?? '' }),
          // With the fallback, members that an event lacks are ignored; otherwise they are required.
          provider_config: { ...configOf(values), ...(workspace !== '' && { routing: { fallback: true } }) },
        }
        if (made.current?.provider === provider)
          await api('PATCH /api/bridges/{id}', { path: { id: made.current.id }, body: settings })
        else {
          const { platform, extension_name } = provider
          const body = {
            ...{ ...settings, platform, extension_name, enabled: false },
            ...(workspace === ''
              ? ({ scope: 'global' } as const)
              : ({ scope: 'workspace', workspace_id: workspace } as const)),
          }
          made.current = { id: (await api('POST /api/bridges', { body })).bridge.id, provider }
        }
        const { id } = made.current
        for (const { name: slot } of provider.secret_slots ?? []) {
          const value = values[`${values.provider}.secret.${slot}`]
          if (value) await bindSecret(id, slot, value)
        }
        if (enabled === 'yes') await api('POST /api/bridges/{id}/enable', { path: { id } })
        announce(words.made)
        done(id)
      }}
    />
  )
}

const secretFields = (
  { secret_slots: slots = [] }: Provider,
  n: number,
  applies: NonNullable<FormField['applies']>,
): readonly FormField[] =>
  slots.map(({ name, description, required }) => ({
    ...{ name: `${n}.secret.${name}`, label: name, kind: 'password', applies },
    ...(description && { hint: description }),
    // A bridge can be created without its required secrets, but not started.
    ...(required ? { optional: (values: Values) => values.enabled !== 'yes' } : { optional: true, more: true }),
  }))

/** Stores the value of a secret in the vault and binds it to a slot. */
export async function bindSecret(id: string, slot: string, value: string): Promise<void> {
  await api('PUT /api/bridges/{id}/secret-bindings/{binding_name}', {
    path: { id, binding_name: slot },
    body: { kind: 'secret', secret_ref: `vault:bridges/${id}/${slot}`, secret_value: value },
  })
}

/** Changes the settings of a bridge. The platform, the scope and members without a field stay the same. */
export function EditBridge({ bridge, done }: { readonly bridge: Bridge; readonly done: () => void }) {
  const { data, error, reload } = useProviders()
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  const config = (bridge.provider_config ?? {}) as Config
  const provider = data.find(one => one.platform === bridge.platform && one.extension_name === bridge.extension_name)
  const { fields: own, configOf } = settingsOf(provider, config, '')
  const routing = bridge.routing_policy
  const answers = bridge.workspace_id !== undefined
  const defaults: Defaults = bridge.delivery_defaults ?? {}
  return (
    <Form
      label={text.manage.save}
      fields={[
        { name: 'name', label: fields.name, value: bridge.display_name },
        ...own,
        {
          ...{ name: 'target', label: words.target, optional: true, more: true },
          ...{ value: routeOf(defaults), hint: words.targetHint },
        },
        ...(answers ? [sharedField(routing.include_thread ? 'thread' : routing.include_peer ? 'person' : 'room')] : []),
        directField(bridge.dm_policy ?? 'allowlist'),
        {
          ...{ name: 'progress', label: words.progress, kind: 'select', optional: true, more: true },
          value: defaults.progress?.tool_progress ?? '',
          options: [['', text.schemaForm.unset], ...PROGRESS.map(one => [one, one] as const)],
        },
        {
          ...{ name: 'quiet', label: words.quiet, kind: 'check', more: true },
          value: bridge.notification_suppress ? 'yes' : '',
        },
      ]}
      submit={async values => {
        const { name = '', target = '', progress = '', quiet } = values
        const address = target === '' ? {} : addressOf(target)
        if (!address) throw new Error(words.badRoute)
        const { mode, progress: before } = defaults
        const shown = { grouping: 'accumulate' as const, ...before }
        const tool_progress = progress as (typeof PROGRESS)[number]
        await api('PATCH /api/bridges/{id}', {
          path: { id: bridge.id },
          body: {
            ...{ display_name: name, provider_config: configOf(values), dm_policy: directOf(values) },
            notification_suppress: quiet === 'yes',
            ...(answers && { routing_policy: routingOf(values) }),
            delivery_defaults: {
              ...address,
              ...(mode && { mode }),
              ...(progress === '' ? {} : { progress: { ...shown, tool_progress } }),
            },
          },
        })
        announce(text.manage.saved)
        done()
      }}
    />
  )
}
