import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { clock } from '../../core/format.js'
import { text } from '../../text.js'
import { Confirmed, Form } from '../../ui/form.js'
import type { ListView } from '../../ui/list.js'
import { Badge, Fields } from '../../ui/parts.js'
import { filled } from './json.js'

type Secret = ReplyOf<'GET /api/vault/secrets'>['secrets'][number]

const words = text.vault
const { fields } = text.manage

const store = async (ref: string, value: string, kind?: string) => {
  await api('PUT /api/vault/secrets', { body: { ref, secret_value: value, ...filled({ kind }) } })
  announce(words.stored)
}

/** Secrets by name. Replies never contain values; the page sends a new value once and does not keep it. */
export const vault: ListView<Secret> = {
  name: 'vault',
  title: words.title,
  command: 'svc vault list',
  load: async signal => (await api('GET /api/vault/secrets', {}, signal)).secrets,
  changes: /^(?:vault|secret)/,
  id: ({ ref }) => ref,
  columns: [
    { header: words.ref, cell: ({ ref }) => <code>{ref}</code>, wide: true },
    { header: words.kind, cell: ({ kind }) => kind ?? '–' },
    { header: fields.state, cell: ({ present }) => <Badge of={present ? words.present : words.missing} /> },
    { header: words.updated, cell: ({ updated_at: time }) => clock(time) },
  ],
  empty: words.none,
  filter: true,
  create: {
    label: words.add,
    command: 'svc vault put <ref>',
    show: done => (
      <Form
        label={words.store}
        fields={[
          { name: 'ref', label: words.ref, value: 'vault:', hint: words.refHint },
          { name: 'value', label: words.value, kind: 'password' },
          { name: 'kind', label: words.kind, optional: true },
        ]}
        submit={async ({ ref = '', value = '', kind }) => {
          await store(ref, value, kind)
          done(ref)
        }}
      />
    ),
  },
  detail: {
    title: ({ ref }) => ref,
    command: ({ ref }) => `svc vault show ${ref}`,
    show: (secret, reload) => (
      <>
        <Fields
          of={[
            [words.kind, secret.kind],
            [words.namespace, secret.namespace],
            [fields.version, secret.version],
            [words.created, clock(secret.created_at)],
            [words.updated, clock(secret.updated_at)],
          ]}
        />
        <Form
          key={secret.ref}
          label={words.replace}
          fields={[{ name: 'value', label: words.newValue, kind: 'password' }]}
          submit={async ({ value = '' }) => {
            await store(secret.ref, value)
            reload()
          }}
        />
        <Confirmed
          label={words.remove}
          question={words.removeQuestion(secret.ref)}
          run={async () => {
            await api('DELETE /api/vault/secrets', { query: { ref: secret.ref } })
            reload()
          }}
        />
      </>
    ),
  },
}
