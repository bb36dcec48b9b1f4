import { useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { text } from '../../text.js'
import { Confirmed, Form } from '../../ui/form.js'
import type { ListView } from '../../ui/list.js'
import { Action, Badge, Empty, Fields } from '../../ui/parts.js'
import { WorkspaceChoice } from '../../ui/workspace-choice.js'

type Activation = ReplyOf<'GET /api/bundles/activations'>['activations'][number]
type Bundle = ReplyOf<'GET /api/bundles/catalog'>['bundles'][number]
type Profile = NonNullable<Bundle['profiles']>[number]
type Place = Parameters<typeof activate>[1]

/** A profile of a bundle, with its activations. */
interface Offer {
  readonly extension: string
  readonly bundle: string
  readonly about: string | undefined
  /** Absent: the bundle of the activation has been removed. */
  readonly profile: Profile | undefined
  readonly name: string
  readonly activations: readonly Activation[]
}

const words = text.bundles
const { fields } = text.manage

const idOf = (extension: string, bundle: string, profile: string) => [extension, bundle, profile].join('/')

async function offers(signal: AbortSignal): Promise<readonly Offer[]> {
  const [{ bundles }, { activations }] = await Promise.all([
    api('GET /api/bundles/catalog', {}, signal),
    api('GET /api/bundles/activations', {}, signal),
  ])
  const left = new Set(activations)
  const offered = bundles.flatMap(bundle =>
    (bundle.profiles ?? []).map((profile): Offer => {
      const own = activations.filter(
        one =>
          one.extension_name === bundle.extension_name &&
          one.bundle_name === bundle.bundle_name &&
          one.profile_name === profile.name,
      )
      for (const one of own) left.delete(one)
      const { extension_name: extension, bundle_name: name, description: about } = bundle
      return { extension, bundle: name, about, profile, name: profile.name, activations: own }
    }),
  )
  const orphaned = [...left].map((one): Offer => {
    const { extension_name: extension, bundle_name: bundle, bundle_description: about, profile_name: name } = one
    return { extension, bundle, about, profile: undefined, name, activations: [one] }
  })
  return [...offered, ...orphaned]
}

export const bundles: ListView<Offer> = {
  name: 'bundles',
  title: words.title,
  command: 'svc bundle catalog',
  load: offers,
  changes: /^(?:bundle|extension|plugin)\./,
  id: ({ extension, bundle, name }) => idOf(extension, bundle, name),
  columns: [
    { header: words.bundle, cell: ({ bundle }) => bundle, wide: true },
    { header: words.profile, cell: ({ name }) => name },
    { header: words.extension, cell: ({ extension }) => extension },
    {
      header: fields.state,
      cell: ({ activations }) => <Badge of={activations.length > 0 ? words.active : words.inactive} />,
    },
  ],
  empty: words.none,
  detail: {
    title: ({ bundle, name }) => `${bundle}: ${name}`,
    command: ({ extension, bundle, name }) => `svc bundle preview ${extension} ${bundle} ${name}`,
    show: (offer, reload) => (
      <>
        {offer.about && <p>{offer.about}</p>}
        {offer.profile?.description && <p class="muted">{offer.profile.description}</p>}
        {offer.activations.map(activation => (
          <Active key={activation.id} activation={activation} reload={reload} />
        ))}
        {offer.profile && <Activate offer={offer} reload={reload} />}
      </>
    ),
  },
}

function Active({ activation, reload }: { readonly activation: Activation; readonly reload: () => void }) {
  const { id, version, scope, workspace_id: workspace, spec_drift: drift } = activation
  const path = { id }
  return (
    <section class="panel">
      <h3>{words.activation}</h3>
      <Fields of={[[words.scope, workspace ? `${scope} ${workspace}` : scope]]} />
      <Contents of={activation} />
      <div class="actions">
        {drift && (
          <Action
            label={words.update}
            run={async () => {
              await api('PATCH /api/bundles/activations/{id}', { path, body: { expected_version: version } })
              reload()
            }}
          />
        )}
        <Confirmed
          label={words.deactivate}
          question={words.deactivateQuestion}
          run={async () => {
            await api('DELETE /api/bundles/activations/{id}', { path })
            announce(words.deactivated)
            reload()
          }}
        />
      </div>
    </section>
  )
}

/** The preview of an activation, and a button that activates exactly the previewed contents. */
function Activate({ offer, reload }: { readonly offer: Offer; readonly reload: () => void }) {
  const [preview, setPreview] = useState<Activation>()
  const [place, setPlace] = useState<Place>({ scope: 'global' })
  const [workspace, setWorkspace] = useState('')
  return (
    <>
      <h3>{words.activate}</h3>
      <Form
        label={words.preview}
        fields={[
          {
            name: 'scope',
            label: words.scope,
            kind: 'select',
            value: 'global',
            options: [
              ['global', words.global],
              ['workspace', words.workspace],
            ],
          },
          { name: 'confirm', label: words.confirm, kind: 'check' },
        ]}
        submit={async ({ scope, confirm }) => {
          const chosen: Place = {
            ...(scope === 'workspace' ? { scope: 'workspace', workspace } : { scope: 'global' }),
            ...(confirm === 'yes' && { confirm_network_requirement: true }),
          }
          setPlace(chosen)
          const body = { ...nameOf(offer), ...chosen }
          setPreview((await api('POST /api/bundles/preview', { body })).activation)
        }}
      >
        {({ scope }) => scope === 'workspace' && <WorkspaceChoice value={workspace} set={setWorkspace} />}
      </Form>
      {preview && (
        <section class="panel" aria-label={words.previewed}>
          <h3>{words.previewed}</h3>
          <Contents of={preview} />
          <Action
            label={words.activate}
            tone="primary"
            run={async () => {
              await activate(offer, place)
              setPreview(undefined)
              announce(words.activated)
              reload()
            }}
          />
        </section>
      )}
    </>
  )
}

const nameOf = ({ extension, bundle, name }: Offer) => ({
  extension_name: extension,
  bundle_name: bundle,
  profile_name: name,
})

const activate = (
  offer: Offer,
  place: {
    readonly scope: 'global' | 'workspace'
    readonly workspace?: string
    readonly confirm_network_requirement?: boolean
  },
) => api('POST /api/bundles/activations', { body: { ...nameOf(offer), ...place } })

/** The records of an activation, by kind. */
function Contents({ of: activation }: { readonly of: Activation }) {
  const { agents, jobs, triggers, layouts, bridges, channels, diagnostics } = activation
  const names = (list: readonly { readonly name?: string; readonly display_name?: string }[] | undefined) =>
    list?.map(one => one.display_name ?? one.name).join(', ')
  const rows = [
    [text.manage.agents, names(agents)],
    [text.automation.jobs, names(jobs)],
    [text.automation.triggers, names(triggers)],
    [words.layouts, names(layouts)],
    [text.bridges.title, names(bridges)],
    [text.network.channels, names(channels)],
  ] as const
  return (
    <>
      {rows.every(([, value]) => !value) ? <Empty>{words.empty}</Empty> : <Fields of={rows} />}
      {diagnostics?.map(({ resource_kind: kind, resource_id: name, message }) => (
        <p key={`${kind} ${name} ${message}`} class="failure">
          {kind} {name}: {message}
        </p>
      ))}
    </>
  )
}
