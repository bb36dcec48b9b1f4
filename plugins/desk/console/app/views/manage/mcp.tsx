import { useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { clock } from '../../core/format.js'
import { text } from '../../text.js'
import { Confirmed, Form } from '../../ui/form.js'
import type { ListView } from '../../ui/list.js'
import { Action, Badge, Empty, Fields, Problem } from '../../ui/parts.js'
import { filled, pairs } from './json.js'

type Server = ReplyOf<'GET /api/settings/mcp-servers'>['mcp_servers'][number]
type Place = 'global' | 'workspace'

const words = text.mcp
const { fields } = text.manage
const place = ({ scope, workspace_id: workspace }: Server) => ({
  scope: (scope === 'workspace' ? 'workspace' : 'global') as Place,
  ...(workspace && { workspace_id: workspace }),
})

export const mcp: ListView<Server> = {
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
    show: done => (
      <Form
        label={words.add}
        fields={[
          { name: 'name', label: fields.name },
          {
            name: 'transport',
            label: words.transport,
            kind: 'select',
            value: 'stdio',
            options: [
              ['stdio', words.stdio],
              ['http', words.http],
              ['sse', words.sse],
            ],
          },
          { name: 'command', label: fields.command, applies: ({ transport }) => transport === 'stdio' },
          {
            name: 'args',
            label: words.args,
            kind: 'area',
            optional: true,
            hint: words.argsHint,
            applies: ({ transport }) => transport === 'stdio',
          },
          { name: 'env', label: words.env, kind: 'area', optional: true, hint: words.envHint },
          { name: 'url', label: words.url, applies: ({ transport }) => transport !== 'stdio' },
        ]}
        submit={async ({ name = '', transport, command, url, args = '', env = '' }) => {
          const server = {
            ...{ name, ...filled({ transport, command, url }) },
            ...(args !== '' && { args: args.split('\n') }),
            ...(env !== '' && { env: pairs(env) }),
          }
          await api('PUT /api/settings/mcp-servers/{name}', {
            path: { name },
            query: { scope: 'global' },
            body: { server },
          })
          announce(words.added)
          done(name)
        }}
      />
    ),
  },
  detail: {
    title: ({ name }) => name,
    command: ({ name }) => `svc mcp show ${name}`,
    show: (server, reload) => <Server key={server.name} listed={server} reload={reload} />,
  },
}

function Server({ listed: known, reload }: { readonly listed: Server; readonly reload: () => void }) {
  // A probe starts the server, so it is asked for and not a part of the list.
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

/** The login to a server: its page in a window of its own, then the code or address that it ends with. */
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
