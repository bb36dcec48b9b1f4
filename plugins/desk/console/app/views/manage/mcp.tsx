import { useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { clock } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { go, linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Confirmed, Form, type Values } from '../../ui/form.js'
import type { ListView } from '../../ui/list.js'
import { Action, Badge, Empty, Fields, Loading, Problem } from '../../ui/parts.js'
import { filled, pairs } from './json.js'

type Server = ReplyOf<'GET /api/settings/mcp-servers'>['mcp_servers'][number]
type Place = 'global' | 'workspace'

const words = text.mcp
const { fields } = text.manage
const place = ({ scope, workspace_id: workspace }: Server) => ({
  scope: (scope === 'workspace' ? 'workspace' : 'global') as Place,
  ...(workspace && { workspace_id: workspace }),
})

/** @param edits whether the details of a server are its editor */
export const mcp = (edits: boolean): ListView<Server> => ({
  name: 'mcp',
  title: words.title,
  command: 'svc mcp list',
  load: async signal => (await api('GET /api/settings/mcp-servers', {}, signal)).mcp_servers,
  changes: /^(?:mcp|config|settings|extension)/,
  id: ({ name }) => name,
  columns: [
    { header: fields.name, cell: ({ name }) => name, wide: true },
    { header: words.transport, cell: ({ transport }) => transport },
    { header: fields.state, cell: server => <Badge of={server.runtime_status?.state ?? words.unknown} /> },
    { header: words.login, cell: ({ auth_status: login }) => (login ? <Badge of={login.status} /> : '–') },
    { header: fields.tools, cell: ({ runtime_status: status }) => status?.tool_count ?? '–' },
  ],
  empty: words.none,
  create: {
    label: words.add,
    command: 'svc mcp add',
    show: done => <ServerForm done={done} />,
  },
  detail: {
    title: ({ name }) => name,
    command: ({ name }) => (edits ? `svc mcp add ${name}` : `svc mcp show ${name}`),
    show: (server, reload) =>
      edits ? (
        <ServerForm
          key={server.name}
          server={server}
          done={name => {
            reload()
            go('manage', 'mcp', name)
          }}
        />
      ) : (
        <Server key={server.name} listed={server} reload={reload} />
      ),
  },
})

/** Adds or replaces a server. An empty field keeps the stored variables and secrets. */
function ServerForm({ server, done }: { readonly server?: Server; readonly done: (name: string) => void }) {
  const workspaces = useResource(async abort => (await api('GET /api/workspaces', {}, abort)).workspaces, [])
  if (!workspaces.data && !server) return <Loading />
  const isProgram = ({ transport }: Values) => transport === 'stdio'
  const isRemote = (values: Values) => !isProgram(values)
  const env = server?.env_keys ?? []
  const secrets = server?.secret_env_keys ?? []
  const headers = [...(server?.header_keys ?? []), ...(server?.secret_header_keys ?? [])]
  const kept = (names: readonly string[], usual: string) =>
    names.length > 0 ? words.keptHint(names.join(', ')) : usual
  const more = { optional: true, more: true } as const
  return (
    <Form
      label={server ? text.manage.save : words.add}
      fields={[
        ...(server
          ? []
          : [
              { name: 'name', label: fields.name },
              {
                ...{ name: 'workspace', label: words.scope, kind: 'select' as const, value: '', ...more },
                options: [
                  ['', words.everywhere] as const,
                  ...(workspaces.data ?? []).map(one => [one.id, one.name || one.root_dir] as const),
                ],
              },
            ]),
        {
          ...{ name: 'transport', label: words.transport, kind: 'select', value: server?.transport ?? 'stdio' },
          options: [
            ['stdio', words.stdio],
            ['http', words.http],
            ['sse', words.sse],
          ],
        },
        { name: 'command', label: fields.command, value: server?.command ?? '', applies: isProgram },
        {
          ...{ name: 'args', label: words.args, kind: 'area', optional: true, hint: words.argsHint },
          ...{ value: (server?.args ?? []).join('\n'), applies: isProgram },
        },
        { name: 'url', label: words.url, value: server?.url ?? '', applies: isRemote },
        { name: 'env', label: words.env, kind: 'area', optional: true, hint: kept(env, words.envHint) },
        { name: 'secret', label: words.secretName, hint: words.secretNameHint, ...more },
        { name: 'value', label: words.secretValue, kind: 'password', ...more },
        {
          ...{ name: 'references', label: words.secretEnv, kind: 'area', ...more },
          hint: kept(secrets, words.secretEnvHint),
        },
        {
          ...{ name: 'headers', label: words.headers, kind: 'area', applies: isRemote, ...more },
          hint: headers.length > 0 ? words.headersAgain(headers.join(', ')) : words.headersHint,
        },
        {
          ...{ name: 'secretHeaders', label: words.secretHeaders, kind: 'area', applies: isRemote, ...more },
          hint: words.secretHeadersHint,
        },
        {
          ...{ name: 'oauth', label: words.oauth, kind: 'check', applies: isRemote, ...more },
          value: server?.auth ? 'yes' : '',
        },
        {
          ...{ name: 'required', label: words.required, kind: 'check', ...more },
          value: server?.required ? 'yes' : '',
        },
        { name: 'sandbox', label: words.sandbox, value: server?.sandbox ?? '', applies: isProgram, ...more },
        {
          ...{ name: 'start', label: words.startTimeout, hint: words.timeoutHint, ...more },
          value: server?.start_timeout ?? '',
        },
        {
          ...{ name: 'call', label: words.callTimeout, hint: words.timeoutHint, ...more },
          value: server?.call_timeout ?? '',
        },
      ]}
      submit={async values => {
        const { transport, command, url, args = '', secret = '', value = '', workspace = '' } = values
        const name = server?.name ?? values.name ?? ''
        if ((secret === '') !== (value === '')) throw new Error(words.secretNeeds)
        const lines = {
          ...{ env: pairs(values.env ?? ''), secret_env: pairs(values.references ?? '') },
          ...{ headers: pairs(values.headers ?? ''), secret_headers: pairs(values.secretHeaders ?? '') },
        }
        const login = server?.auth
        const body = {
          server: {
            ...{ name, ...filled({ transport, command, url, sandbox: values.sandbox }) },
            ...filled({ start_timeout: values.start, call_timeout: values.call }),
            ...(args !== '' && { args: args.split('\n') }),
            ...Object.fromEntries(Object.entries(lines).filter(([, all]) => Object.keys(all).length > 0)),
            ...(values.required === 'yes' && { required: true }),
            ...(values.oauth === 'yes' && {
              auth: login
                ? (({ client_secret_configured: _, ...auth }) => auth)(login)
                : { type: 'oauth', registration: 'auto' as const },
            }),
          },
          ...(env.length > 0 && { preserve_env: env }),
          ...(server && { preserve_secrets: { secret_env: secrets, oauth_client_secret: true } }),
          ...(secret !== '' && { secret_values: { secret_env: { [secret]: value } } }),
        }
        const query = server
          ? place(server)
          : workspace === ''
            ? { scope: 'global' as const }
            : { scope: 'workspace' as const, workspace_id: workspace }
        await api('PUT /api/settings/mcp-servers/{name}', { path: { name }, query, body })
        announce(words.added)
        done(name)
      }}
    />
  )
}

function Server({ listed: known, reload }: { readonly listed: Server; readonly reload: () => void }) {
  // A probe starts the server, so it needs a click and is not part of the list.
  const [probed, setProbed] = useState<Server>()
  const server = probed ?? known
  const { name, runtime_status: status, auth_status: login } = server
  const at = { path: { name }, query: place(server) }
  return (
    <>
      <div class="actions">
        <Action
          label={words.probe}
          tone="primary"
          run={async () => {
            const query = { ...place(server), probe: true }
            setProbed((await api('GET /api/settings/mcp-servers/{name}', { path: { name }, query })).mcp_server)
            announce(words.probed)
          }}
        />
        {login?.token_present && (
          <Action
            label={words.logout}
            run={async () => {
              await api('POST /api/settings/mcp-servers/{name}/auth/logout', at)
              reload()
            }}
          />
        )}
        <a class="button" href={linkTo('manage', 'mcp', name, 'edit')}>
          {words.edit}
        </a>
        <Confirmed
          label={words.remove}
          question={words.removeQuestion(name)}
          run={async () => {
            await api('DELETE /api/settings/mcp-servers/{name}', at)
            reload()
          }}
        />
      </div>
      {status?.diagnostic && <Problem error={status.diagnostic} />}
      <Fields
        of={[
          [fields.state, status && <Badge of={status.state} />],
          [fields.reason, status?.reason],
          [words.transport, server.transport],
          [fields.command, server.command && [server.command, ...(server.args ?? [])].join(' ')],
          [words.url, server.url],
          [words.env, [...(server.env_keys ?? []), ...(server.secret_env_keys ?? [])].join(', ')],
          [fields.source, server.declared_in],
          [words.refused, server.refused_tools?.join(', ')],
        ]}
      />
      {server.auth && <Login server={server} reload={reload} />}
      <h3>{fields.tools}</h3>
      {(server.tools ?? []).length === 0 ? (
        <Empty>{words.noTools}</Empty>
      ) : (
        <ul class="rows">
          {server.tools?.map(tool => (
            <li key={tool.id}>
              <code>{tool.id}</code>
              <p class="muted">{tool.description}</p>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

/** The login to a server: opens the login page in a new window, then takes the resulting code or address. */
function Login({ server, reload }: { readonly server: Server; readonly reload: () => void }) {
  const [begun, setBegun] = useState<{ url: string; manual: boolean }>()
  const { name, auth_status: login } = server
  const at = { path: { name }, query: place(server) }
  return (
    <>
      <h3>{words.login}</h3>
      <Fields
        of={[
          [fields.state, login && <Badge of={login.status} />],
          [words.issuer, login?.issuer],
          [words.expires, login?.expires_at && clock(login.expires_at)],
          [fields.reason, login?.diagnostic],
        ]}
      />
      <Action
        label={words.begin}
        run={async () => {
          const reply = await api('POST /api/settings/mcp-servers/{name}/auth/begin', {
            ...at,
            body: { mode: 'manual' },
          })
          setBegun({ url: reply.authorization_url, manual: reply.manual_supported })
        }}
      />
      {begun && (
        <>
          <p>{words.follow}</p>
          {/^https?:/.test(begun.url) ? (
            <a class="wrap" href={begun.url} target="_blank" rel="noopener noreferrer">
              {begun.url}
            </a>
          ) : (
            <code class="wrap">{begun.url}</code>
          )}
          {begun.manual && (
            <Form
              label={words.finish}
              fields={[{ name: 'code', label: words.code, kind: 'password' }]}
              submit={async ({ code = '' }) => {
                const body = /^https?:/.test(code) ? { redirect_url: code } : { code }
                await api('POST /api/settings/mcp-servers/{name}/auth/exchange', { ...at, body })
                setBegun(undefined)
                reload()
              }}
            />
          )}
        </>
      )}
    </>
  )
}
