import { useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { bytes } from '../../core/format.js'
import { text } from '../../text.js'
import { Form } from '../../ui/form.js'
import { Fields, Problem } from '../../ui/parts.js'
import { filled } from './json.js'

type Preview = ReplyOf<'POST /api/extensions/preview'>['preview']
/** The source of an extension: a folder or archive on the daemon's machine, or a marketplace entry. */
interface Source {
  readonly path?: string
  readonly slug?: string
  readonly allow_unverified?: true
}

const words = text.install
const { fields } = text.manage

/** Installs an extension after a preview of its contents and permissions. */
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
            ...(unverified === 'yes' && { allow_unverified: true as const }),
          }
          setSource(from)
          setPreview((await api('POST /api/extensions/preview', { body: from })).preview)
        }}
      />
      {preview && <Offer preview={preview} source={source} done={done} />}
    </>
  )
}

/** Updates an installed extension after a preview of its new contents and permissions. */
export function Update({ name, done }: { readonly name: string; readonly done: () => void }) {
  const [source, setSource] = useState<Source>({})
  const [preview, setPreview] = useState<Preview>()
  return (
    <>
      <Form
        label={text.extensions.look}
        fields={[
          {
            ...{ name: 'path', label: text.extensions.archive, optional: true },
            hint: text.extensions.archiveHint,
          },
          { name: 'unverified', label: words.unverified, kind: 'check' },
        ]}
        submit={async ({ path = '', unverified }) => {
          const from = { ...filled({ path }), ...(unverified === 'yes' && { allow_unverified: true as const }) }
          setPreview(undefined)
          setSource(from)
          setPreview((await api('POST /api/extensions/preview', { body: { ...from, name } })).preview)
        }}
      />
      {preview?.action === 'none' && <p role="status">{text.extensions.upToDate}</p>}
      {preview && preview.action !== 'none' && (
        <Offer
          preview={preview}
          source={source}
          updates={name}
          done={() => {
            setPreview(undefined)
            done()
          }}
        />
      )}
    </>
  )
}

function Brought({ label, of: all }: { readonly label: string; readonly of: Preview['brings'] }) {
  if (all.length === 0) return null
  return (
    <>
      <h4>{label}</h4>
      <ul class="rows">
        {all.map(one => (
          <li key={`${one.kind} ${one.name}`}>
            <span class="muted">{one.kind}</span> <code class="wrap">{one.name}</code>
            {one.runs && <p class="muted wrap">{one.runs}</p>}
            {one.reaches && one.reaches.length > 0 && <p class="muted wrap">{one.reaches.join(', ')}</p>}
            {one.given && one.given.length > 0 && <p class="muted wrap">{one.given.join(', ')}</p>}
          </li>
        ))}
      </ul>
    </>
  )
}

function Offer({
  preview,
  source,
  updates,
  done,
}: {
  readonly preview: Preview
  readonly source: Source
  /** The installed extension to update. */
  readonly updates?: string
  readonly done: (name?: string) => void
}) {
  const { consents_asked: asked, consents_given: given } = preview
  const missing = asked.filter(one => !given.includes(one))
  const added = updates === undefined ? [] : preview.permissions_added
  const news = updates === undefined ? [] : preview.new_brings
  const isMore = updates !== undefined && (preview.consent_required || added.length + news.length > 0)
  return (
    <section class="panel" aria-label={words.brings}>
      <h3>
        {preview.name} {preview.version}
      </h3>
      <p>{preview.description}</p>
      <Fields
        of={[
          [words.former, preview.previous_version],
          [words.permissions, preview.permissions.join(', ') || words.noPermissions],
          [words.asksNewly, added.join(', ')],
          [words.dropped, preview.permissions_removed.join(', ')],
          [words.given, given.join(', ')],
          [words.variables, preview.requires_env.join(', ')],
          [fields.source, preview.source_url],
          [words.commit, preview.commit],
          [words.files, `${preview.files} (${bytes(preview.bytes)})`],
          [words.sandboxed, preview.sandboxed && text.tools.yes],
          [words.tier, preview.registry_tier],
        ]}
      />
      <Brought label={words.bringsNewly} of={news} />
      <Brought label={words.brings} of={preview.brings.filter(one => !news.some(({ name }) => name === one.name))} />
      {preview.refusal ? (
        <Problem error={preview.refusal.error} />
      ) : (
        <Form
          label={preview.action === 'update' ? words.update : words.install}
          fields={[
            ...missing.map(one => ({
              ...{ name: one, kind: 'check' as const, optional: true as const },
              label: words.allow(one, words.meanings[one]),
            })),
            ...(isMore ? [{ name: 'agree', label: words.agree, kind: 'check' as const }] : []),
          ]}
          submit={async values => {
            if (isMore && values.agree !== 'yes') throw new Error(words.needsConsent)
            const { tree_digest, consent_digest } = preview
            const allow = [...given, ...missing.filter(one => values[one] === 'yes')]
            // The daemon compares both digests, so that it installs exactly the previewed files.
            const body = {
              ...{ ...source, tree_digest },
              ...(consent_digest !== '' && { consent_digest }),
              ...(allow.length > 0 && { allow }),
            }
            if (updates === undefined) await api('POST /api/extensions', { body })
            else {
              const { slug: _, ...rest } = body
              await api('PUT /api/extensions/{name}', { path: { name: updates }, body: rest })
            }
            announce(updates === undefined ? words.installed : words.updated)
            done(preview.name)
          }}
        />
      )}
    </section>
  )
}
