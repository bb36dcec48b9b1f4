import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, deliver, type ReplyOf } from '../../core/api.js'
import { text } from '../../text.js'
import { Form, type FormField, type Values } from '../../ui/form.js'
import { Fields, Loading } from '../../ui/parts.js'
import { pairs } from '../manage/json.js'
import { agentField, useChoices, workspaceField } from './choices.js'

export type Trigger = ReplyOf<'GET /api/automation/triggers'>['triggers'][number]
type Scheme = NonNullable<Trigger['webhook_scheme']>

const words = text.automation
const editor = text.triggerEditor

const SCHEMES: readonly Scheme[] = ['service', 'standard', 'github', 'gitlab', 'stripe', 'slack', 'linear', 'sentry']

/** The new secret of a trigger. Only this signal holds it, and leaving the view clears it. */
const fresh = signal<{ readonly trigger: string; readonly secret: string } | undefined>(undefined)

function madeSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  return [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('')
}

/** Creates or changes a trigger. */
export function TriggerForm({ trigger, done }: { readonly trigger?: Trigger; readonly done: (id: string) => void }) {
  const choices = useChoices()
  if (!choices) return <Loading />
  const { fire_limit: limit, retry } = trigger ?? {}
  const isHook = ({ kind }: Values) => kind === 'webhook'
  const { keep, ...others } = editor.secrets
  const fields: readonly FormField[] = [
    { name: 'name', label: words.name, value: trigger?.name ?? '' },
    {
      ...{ name: 'kind', label: editor.when, kind: 'select', options: Object.entries(editor.kinds) },
      value: trigger?.event === 'webhook' ? 'webhook' : 'event',
    },
    {
      ...{ name: 'event', label: words.event, hint: editor.eventHint },
      ...{ value: trigger?.event === 'webhook' ? '' : (trigger?.event ?? ''), applies: values => !isHook(values) },
    },
    {
      ...{ name: 'slug', label: editor.slug, hint: editor.slugHint, applies: isHook },
      value: trigger?.endpoint_slug ?? '',
    },
    {
      ...{ name: 'scheme', label: editor.scheme, kind: 'select', applies: isHook },
      ...{ value: trigger?.webhook_scheme ?? 'service', options: SCHEMES.map(one => [one, one] as const) },
    },
    {
      ...{ name: 'secrecy', label: editor.secret, kind: 'select', applies: isHook },
      value: trigger?.webhook_secret_present ? 'keep' : 'make',
      options: Object.entries(trigger?.webhook_secret_present ? { keep, ...others } : others),
    },
    {
      ...{ name: 'secret', label: editor.value, kind: 'password' },
      applies: values => isHook(values) && values.secrecy === 'type',
    },
    {
      ...{ name: 'ref', label: editor.ref, hint: editor.refHint, value: trigger?.webhook_secret_ref ?? '' },
      applies: values => isHook(values) && values.secrecy === 'ref',
    },
    {
      ...{ name: 'filter', label: editor.filter, kind: 'area', optional: true, hint: editor.filterHint },
      value: Object.entries(trigger?.filter ?? {})
        .map(([name, value]) => `${name}=${value}`)
        .join('\n'),
    },
    agentField(choices, trigger?.agent_name || undefined),
    ...(trigger ? [] : [workspaceField(choices)]),
    { name: 'prompt', label: words.prompt, kind: 'area', value: trigger?.prompt ?? '' },
    {
      ...{ name: 'repeat', label: editor.repeat, kind: 'check', more: true, applies: isHook },
      value: trigger?.webhook_allow_repeat ? 'yes' : '',
    },
    {
      ...{ name: 'most', label: editor.most, kind: 'number', optional: true, more: true },
      value: limit ? String(limit.max) : '',
    },
    {
      ...{ name: 'window', label: editor.window, optional: true, more: true, hint: editor.windowHint },
      value: limit?.window ?? '',
    },
    {
      ...{ name: 'retry', label: editor.retry, kind: 'select', optional: true, more: true },
      ...{ value: retry?.strategy ?? 'none', options: Object.entries(editor.retries) },
    },
    {
      ...{ name: 'attempts', label: editor.attempts, kind: 'number', optional: true, more: true },
      ...{ value: String(retry?.max_retries || 3), applies: values => values.retry === 'backoff' },
    },
    {
      ...{ name: 'delay', label: editor.delay, optional: true, more: true, hint: editor.windowHint },
      ...{ value: retry?.base_delay || '30s', applies: values => values.retry === 'backoff' },
    },
  ]
  return (
    <Form
      label={trigger ? text.manage.save : text.jobEditor.add}
      fields={fields}
      submit={async values => {
        const { name = '', filter = '', agent: agent_name = '', workspace = '', prompt = '' } = values
        const secret = isHook(values) && values.secrecy === 'make' ? madeSecret() : values.secret
        const event = isHook(values) ? 'webhook' : (values.event ?? '')
        const { most = '', window = '', attempts, delay = '', retry: strategy } = values
        const body = {
          ...{ name, event, agent_name, prompt },
          ...((trigger || filter !== '') && { filter: pairs(filter) }),
          ...(isHook(values) && {
            ...{ endpoint_slug: values.slug ?? '', webhook_scheme: values.scheme as Scheme },
            webhook_allow_repeat: values.repeat === 'yes',
            ...(secret && { webhook_secret_value: secret }),
            ...(values.ref && { webhook_secret_ref: values.ref }),
          }),
          ...((most !== '' || window !== '') && { fire_limit: { max: Number(most), window } }),
          ...(strategy === 'backoff'
            ? { retry: { strategy: 'backoff' as const, max_retries: Number(attempts), base_delay: delay } }
            : retry?.strategy === 'backoff' && {
                retry: { strategy: 'none' as const, max_retries: 0, base_delay: retry.base_delay },
              }),
        }
        const { trigger: saved } = trigger
          ? await api('PATCH /api/automation/triggers/{id}', { path: { id: trigger.id }, body })
          : await api('POST /api/automation/triggers', {
              body: {
                ...body,
                ...(workspace === '' ? { scope: 'global' } : { scope: 'workspace', workspace_id: workspace }),
              },
            })
        fresh.value = isHook(values) && values.secrecy === 'make' && secret ? { trigger: saved.id, secret } : undefined
        announce(text.manage.saved)
        done(saved.id)
      }}
    />
  )
}

/** The new secret of this trigger, until it is hidden or the view closes. */
export function FreshSecret({ of: id }: { readonly of: string }) {
  useEffect(
    () => () => {
      fresh.value = undefined
    },
    [],
  )
  if (fresh.value?.trigger !== id) return null
  const { secret } = fresh.value
  return (
    <section class="panel" aria-label={editor.secret}>
      <p>{editor.shownOnce}</p>
      <p>
        <code class="wrap">{secret}</code>
      </p>
      <div class="actions">
        <button
          type="button"
          onClick={() => {
            void navigator.clipboard.writeText(secret).then(
              () => announce(text.copied),
              () => {},
            )
          }}
        >
          {editor.copySecret}
        </button>
        <button
          type="button"
          onClick={() => {
            fresh.value = undefined
          }}
        >
          {editor.hide}
        </button>
      </div>
    </section>
  )
}

/** Lets the daemon sign a delivery, and sends it to the webhook like an external program. */
export function TestDelivery({ id }: { readonly id: string }) {
  const [sent, setSent] = useState<{ readonly path: string; readonly matched: number }>()
  return (
    <>
      <h3>{editor.test}</h3>
      <Form
        label={editor.send}
        fields={[{ name: 'body', label: editor.body, kind: 'area', value: '{"test": true}' }]}
        submit={async ({ body = '' }) => {
          setSent(undefined)
          const { delivery } = await api('POST /api/automation/triggers/{id}/test', { path: { id }, body: { body } })
          const reply = await deliver(delivery.path, delivery.headers, delivery.body)
          const { matched = 0 } = (Object(reply) as { result?: { matched?: number } }).result ?? {}
          setSent({ path: delivery.path, matched })
          announce(editor.accepted(matched))
        }}
      />
      {sent && (
        <Fields
          of={[
            [editor.sentTo, <code key="path">{sent.path}</code>],
            [editor.outcome, editor.accepted(sent.matched)],
          ]}
        />
      )}
    </>
  )
}
