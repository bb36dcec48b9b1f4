import { useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { clock } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Confirmed, Form } from '../../ui/form.js'
import { Action, Badge, Code, Fields, Problem } from '../../ui/parts.js'
import { Update } from './install.js'

export type Extension = ReplyOf<'GET /api/extensions'>['extensions'][number]

const { fields } = text.manage
const { enable, disable } = text.automation
const words = text.extensions

export function ExtensionDetails({
  extension: listed,
  reload: reloadList,
}: {
  readonly extension: Extension
  readonly reload: () => void
}) {
  const { name } = listed
  const at = { path: { name } }
  const known = useResource(
    async abort => {
      const [{ extension }, provenance] = await Promise.all([
        api('GET /api/extensions/{name}', at, abort),
        // Extensions that were copied by hand have no provenance.
        api('GET /api/extensions/{name}/provenance', at, abort).then(
          reply => reply.provenance,
          () => undefined,
        ),
      ])
      return { extension, provenance }
    },
    [name],
    /^extension/,
  )
  const extension = known.data?.extension ?? listed
  const provenance = known.data?.provenance
  const reload = () => {
    known.reload()
    reloadList()
  }
  return (
    <>
      <div class="actions">
        <Action
          label={extension.enabled ? disable : enable}
          run={async () => {
            await (extension.enabled
              ? api('POST /api/extensions/{name}/disable', at)
              : api('POST /api/extensions/{name}/enable', at))
            reload()
          }}
        />
        {extension.enabled && (
          <Action
            label={words.reload}
            run={async () => {
              await api('POST /api/extensions/{name}/reload', { ...at, body: {} })
              reload()
            }}
          />
        )}
        <Confirmed
          label={words.remove}
          question={words.removeQuestion(name)}
          run={async () => {
            await api('DELETE /api/extensions/{name}', at)
            reload()
          }}
        />
        <Confirmed
          label={words.removeAll}
          question={words.purgeQuestion(name)}
          run={async () => {
            await api('DELETE /api/extensions/{name}', { ...at, query: { purge: true } })
            reload()
          }}
        />
      </div>
      {extension.last_error && <Problem error={extension.last_error} />}
      <Fields
        of={[
          [fields.version, extension.version],
          [fields.state, extension.state],
          [fields.health, extension.health_message ?? extension.health],
          [words.missing, extension.missing_env?.join(', ')],
          [fields.source, extension.source],
          [fields.folder, extension.origin_path],
        ]}
      />
      <Secrets name={name} changed={reload} />
      <Settings name={name} />
      {extension.items && extension.items.length > 0 && (
        <>
          <h3>{words.brings}</h3>
          <ul class="rows">
            {extension.items.map(({ id, kind, name, live }) => (
              <li key={`${kind} ${id}`}>
                <span class="muted">{kind}</span>
                <code class="grow wrap">{name}</code>
                <Badge of={live ? 'active' : 'inactive'} />
              </li>
            ))}
          </ul>
        </>
      )}
      {provenance && (
        <>
          <h3>{words.update}</h3>
          <Update name={name} done={reload} />
          <Origin name={name} provenance={provenance} />
        </>
      )}
      <Log name={name} />
    </>
  )
}

/** The source of the extension, and whether its files are unmodified. */
function Origin({
  name,
  provenance,
}: {
  readonly name: string
  readonly provenance: NonNullable<Extension['provenance']>
}) {
  const [matches, setMatches] = useState<boolean>()
  return (
    <>
      <Fields
        of={[
          [words.installed, clock(provenance.installed_at)],
          [words.by, provenance.installed_by],
          [text.install.permissions, provenance.permissions?.join(', ')],
          [text.install.tier, provenance.registry_tier],
          [words.checksum, provenance.checksum_verified && words.verified],
        ]}
      />
      <div class="actions">
        <Action
          label={words.verify}
          run={async () => {
            const reply = await api('POST /api/extensions/{name}/verify', { path: { name } })
            setMatches(reply.matches)
          }}
        />
      </div>
      {matches !== undefined && (
        <p role="status" class={matches ? '' : 'failure'}>
          {matches ? words.matches : words.differs}
        </p>
      )}
    </>
  )
}

/** The declared variables: whether each has a source, a field for its value, and a button that deletes the value. */
function Secrets({ name, changed }: { readonly name: string; readonly changed: () => void }) {
  const { data, error, reload } = useResource(
    async abort => api('GET /api/extensions/{name}/secrets', { path: { name } }, abort),
    [name],
    /^(?:extension|vault)/,
  )
  if (!data) return <Problem error={error} retry={reload} />
  const known = new Set([...data.declared_env, ...data.bindings.map(one => one.env_name)])
  if (known.size === 0) return null
  const again = () => {
    reload()
    changed()
  }
  return (
    <>
      <h3>{words.secrets}</h3>
      {[...known].map(one => {
        const binding = data.bindings.find(({ env_name: name }) => name === one)
        const isSet = data.bound_env_keys.includes(one)
        return (
          <div key={one} class="secret">
            {binding?.stale && <p class="failure">{words.stale(one)}</p>}
            {data.declared_env.includes(one) && (
              <Form
                label={words.set(one)}
                fields={[{ name: 'value', label: isSet ? words.isSet(one) : one, kind: 'password' }]}
                submit={async ({ value = '' }) => {
                  const { mcp_server, header_name } = binding ?? {}
                  const bound = { env_name: one, value, ...(mcp_server && { mcp_server }) }
                  await api('PUT /api/extensions/{name}/secrets', {
                    path: { name },
                    body: { bindings: [{ ...bound, ...(header_name && { header_name }) }] },
                  })
                  announce(words.stored)
                  again()
                }}
              />
            )}
            {binding && (
              <Confirmed
                label={words.unset(one)}
                question={words.unsetQuestion(one)}
                run={async () => {
                  await api('DELETE /api/extensions/{name}/secrets/{env_name}', { path: { name, env_name: one } })
                  again()
                }}
              />
            )}
          </div>
        )
      })}
    </>
  )
}

/** The settings of the extension, whose keys begin with its name. Each one links to its editor. */
function Settings({ name }: { readonly name: string }) {
  const { data } = useResource(
    async abort =>
      (await api('GET /api/settings/keys', {}, abort)).keys.filter(({ key }) => key.startsWith(`${name}.`)),
    [name],
    /^(?:config|settings|extension)/,
  )
  if (!data || data.length === 0) return null
  return (
    <>
      <h3>{words.settings}</h3>
      <ul class="rows">
        {data.map(({ key, value, description }) => (
          <li key={key}>
            <a class="grow wrap" href={linkTo('manage', 'settings', key)}>
              {key}
            </a>
            <code class="clip">{JSON.stringify(value)}</code>
            {description && <p class="muted">{description}</p>}
          </li>
        ))}
      </ul>
    </>
  )
}

function Log({ name }: { readonly name: string }) {
  const { data } = useResource(
    async signal => (await api('GET /api/extensions/{name}/logs', { path: { name } }, signal)).logs,
    [name],
    /^extension/,
  )
  if (!data || data.length === 0) return null
  return (
    <>
      <h3>{text.manage.logs}</h3>
      <Code label={text.manage.logs}>{data.map(({ message }) => message).join('\n')}</Code>
    </>
  )
}
