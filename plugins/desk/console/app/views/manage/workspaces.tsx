import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { clock } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { text } from '../../text.js'
import { Confirmed, Form } from '../../ui/form.js'
import type { ListView } from '../../ui/list.js'
import { Action, Badge, Fields, Problem } from '../../ui/parts.js'
import { filled, listed } from './json.js'

type Workspace = ReplyOf<'GET /api/workspaces'>['workspaces'][number]

const words = text.workspaces
const { fields } = text.manage

export const workspaces: ListView<Workspace> = {
  name: 'workspaces',
  title: words.title,
  command: 'svc workspace list',
  load: async signal => (await api('GET /api/workspaces', {}, signal)).workspaces,
  changes: /^workspace/,
  id: ({ id }) => id,
  columns: [
    { header: fields.name, cell: ({ name, root_dir: folder }) => name || folder },
    { header: fields.folder, cell: ({ root_dir: folder }) => folder, wide: true },
    { header: fields.agent, cell: ({ default_agent: agent }) => agent ?? '–' },
  ],
  empty: words.none,
  create: {
    label: words.add,
    command: 'svc workspace add <folder>',
    show: done => (
      <Form
        label={words.add}
        fields={[
          { name: 'root_dir', label: fields.folder, hint: words.folderHint },
          { name: 'name', label: fields.name, optional: true },
        ]}
        submit={async ({ root_dir = '', name }) => {
          const { workspace } = await api('POST /api/workspaces', { body: { root_dir, ...filled({ name }) } })
          done(workspace.id)
        }}
      />
    ),
  },
  detail: {
    title: ({ name, root_dir: folder }) => name || folder,
    command: ({ id }) => `svc workspace info ${id}`,
    show: (workspace, reload) => (
      <>
        <Fields
          of={[
            [fields.folder, workspace.root_dir],
            [words.more, workspace.add_dirs.join(', ')],
            [words.created, clock(workspace.created_at)],
          ]}
        />
        <Trust id={workspace.id} />
        <h3>{words.edit}</h3>
        <Form
          key={`${workspace.id} ${workspace.updated_at}`}
          label={text.manage.save}
          fields={[
            { name: 'name', label: fields.name, value: workspace.name },
            { name: 'agent', label: words.agent, value: workspace.default_agent ?? '', optional: true },
            { name: 'more', label: words.more, kind: 'area', value: workspace.add_dirs.join('\n'), optional: true },
          ]}
          submit={async ({ name = '', agent = '', more = '' }) => {
            await api('PATCH /api/workspaces/{id}', {
              path: { id: workspace.id },
              body: { name, default_agent: agent, add_dirs: listed(more) },
            })
            announce(text.manage.saved)
            reload()
          }}
        />
        <Confirmed
          label={words.remove}
          question={words.removeQuestion(workspace.name || workspace.root_dir)}
          run={async () => {
            await api('DELETE /api/workspaces/{id}', { path: { id: workspace.id } })
            reload()
          }}
        />
      </>
    ),
  },
}

/** Whether the daemon runs the hooks, MCP servers and agents that the files of a workspace declare. */
function Trust({ id }: { readonly id: string }) {
  const { data, error, reload } = useResource(
    async signal => (await api('GET /api/workspaces/{id}/trust', { path: { id } }, signal)).trust,
    [id],
    /^workspace|^trust/,
  )
  if (!data) return <Problem error={error} retry={reload} />
  return (
    <>
      <h3>{words.trust}</h3>
      <Fields
        of={[
          [fields.state, <Badge key="state" of={data.state} />],
          [words.files, data.files.join(', ')],
        ]}
      />
      <div class="actions">
        {(data.state === 'untrusted' || data.state === 'changed') && (
          <Action
            label={words.trustThem}
            run={async () => {
              await api('PUT /api/workspaces/{id}/trust', { path: { id }, body: { digest: data.digest } })
              reload()
            }}
          />
        )}
        {(data.state === 'trusted' || data.state === 'changed') && (
          <Action
            label={words.untrust}
            run={async () => {
              await api('DELETE /api/workspaces/{id}/trust', { path: { id } })
              reload()
            }}
          />
        )}
      </div>
    </>
  )
}
