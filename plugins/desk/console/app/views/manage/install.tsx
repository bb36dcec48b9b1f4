import { useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { bytes } from '../../core/format.js'
import { text } from '../../text.js'
import { Form } from '../../ui/form.js'
import { Action, Fields, Problem } from '../../ui/parts.js'

type Preview = ReplyOf<'POST /api/extensions/preview'>['preview']
/** Where an extension comes from: a folder or archive on the machine of the daemon, or an entry of the marketplace. */
interface Source {
  readonly path?: string
  readonly slug?: string
}

const words = text.install
const { fields } = text.manage

/** Installs an extension after showing what it brings and which permissions it asks for. */
export function Install({
  source: fixed,
  done,
}: {
  /** Absent: a field asks for the folder. */
  readonly source?: Source
  readonly done: (name?: string) => void
}) {
  const [source, setSource] = useState<Source>(fixed ?? {})
  const [preview, setPreview] = useState<Preview>()
  return (
    <>
      <Form
        label={words.look}
        fields={[
          ...(fixed ? [] : [{ name: 'path', label: words.path, hint: words.pathHint }]),
          { name: 'unverified', label: words.unverified, kind: 'check' },
        ]}
        submit={async ({ path, unverified }) => {
          const from = {
            ...(fixed ?? { path: path ?? '' }),
            ...(unverified === 'yes' && { allow_unverified: true }),
          }
          setSource(from)
          setPreview((await api('POST /api/extensions/preview', { body: from })).preview)
        }}
      />
      {preview && <Offer preview={preview} source={source} done={done} />}
    </>
  )
}

function Offer({
  preview,
  source,
  done,
}: {
  readonly preview: Preview
  readonly source: Source
  readonly done: (name?: string) => void
}) {
  return (
    <section class="panel" aria-label={words.brings}>
      <h3>
        {preview.name} {preview.version}
      </h3>
      <p>{preview.description}</p>
      <Fields
        of={[
          [words.permissions, preview.permissions.join(', ') || words.noPermissions],
          [words.consents, preview.consents_asked.join(', ')],
          [words.variables, preview.requires_env.join(', ')],
          [fields.source, preview.source_url],
          [words.commit, preview.commit],
          [words.files, `${preview.files} (${bytes(preview.bytes)})`],
          [words.sandboxed, preview.sandboxed && text.tools.yes],
          [words.tier, preview.registry_tier],
        ]}
      />
      {preview.brings.length > 0 && (
        <>
          <h4>{words.brings}</h4>
          <ul class="rows">
            {preview.brings.map(one => (
              <li key={`${one.kind} ${one.name}`}>
                <span class="muted">{one.kind}</span> <code class="wrap">{one.name}</code>
                {one.runs && <p class="muted wrap">{one.runs}</p>}
              </li>
            ))}
          </ul>
        </>
      )}
      {preview.refusal ? (
        <Problem error={preview.refusal.error} />
      ) : (
        <Action
          label={preview.action === 'update' ? words.update : words.install}
          tone="primary"
          run={async () => {
            const { tree_digest, consent_digest, consents_asked: allow } = preview
            // The daemon compares both digests, so that it installs exactly the previewed files.
            const body = { ...source, tree_digest, consent_digest, ...(allow.length > 0 && { allow }) }
            await api('POST /api/extensions', { body })
            announce(words.installed)
            done(preview.name)
          }}
        />
      )}
    </section>
  )
}
