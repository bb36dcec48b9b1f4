import { useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, apiBlob, type ReplyOf } from '../../core/api.js'
import { bytes, clock } from '../../core/format.js'
import { text } from '../../text.js'
import { Columns } from '../../ui/columns.js'
import { Form } from '../../ui/form.js'
import { Action, Badge, Fields, Page } from '../../ui/parts.js'

type Operation = ReplyOf<'POST /api/support/bundles'>['operation']

const words = text.support
const { fields } = text.manage

/** A support bundle: its contents, the consent to create it, its state, and its download. */
export function Support() {
  const [operation, setOperation] = useState<Operation>()
  return (
    <Columns>
      <Page title={words.title} command="svc support bundle">
        <section>
          <p>{words.about}</p>
          <Form
            label={words.make}
            fields={[
              { name: 'status', label: words.status, kind: 'check', value: 'yes' },
              { name: 'yes', label: words.consent, kind: 'check' },
            ]}
            submit={async ({ yes, status }) => {
              if (yes !== 'yes') throw new Error(words.needsConsent)
              const body = { yes: true, include_status: status === 'yes' }
              let { operation: made } = await api('POST /api/support/bundles', { body })
              setOperation(made)
              while (made.status === 'pending' || made.status === 'running') {
                // With `wait`, the daemon replies when the operation has ended or a time limit has passed.
                const at = { path: { operation_id: made.operation_id }, query: { wait: true } }
                made = (await api('GET /api/support/bundles/{operation_id}', at)).operation
                setOperation(made)
              }
              announce(made.status === 'completed' ? words.ready : words.failed)
            }}
          />
        </section>
        {operation && <Result operation={operation} />}
      </Page>
    </Columns>
  )
}

function Result({ operation }: { readonly operation: Operation }) {
  const name = operation.file_name ?? 'svc-support.tar.gz'
  return (
    <section aria-label={words.bundle}>
      <h2>{words.bundle}</h2>
      <Fields
        of={[
          [fields.state, <Badge key="state" of={operation.status} />],
          [fields.reason, operation.failure_reason],
          [words.file, operation.file_name],
          [words.size, operation.size_bytes !== undefined && bytes(operation.size_bytes)],
          [words.created, clock(operation.created_at)],
        ]}
      />
      {operation.status === 'completed' && (
        <div class="actions">
          <Action
            label={words.download}
            tone="primary"
            run={async () =>
              save(await apiBlob(`/api/support/bundles/${encodeURIComponent(operation.operation_id)}/download`), name)
            }
          />
        </div>
      )}
      {operation.manifest && (
        <ul class="rows">
          {operation.manifest.artifacts.map(({ path, bytes: size, included, omitted_reason: why }) => (
            <li key={path}>
              <code class="grow wrap">{path}</code>
              <span class="muted">{included ? bytes(size) : (why ?? words.omitted)}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

/** Downloads bytes that the page has, because a link could not authenticate. */
function save(content: Blob, name: string): void {
  const url = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
