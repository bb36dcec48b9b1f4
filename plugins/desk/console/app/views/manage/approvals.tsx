import { signal } from '@preact/signals'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { ago, clock, valueText } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Confirmed, Form } from '../../ui/form.js'
import { List, type ListView } from '../../ui/list.js'
import { Action, Badge, Code, Fields, Loading, Problem } from '../../ui/parts.js'
import { WorkspaceChoice } from '../../ui/workspace-choice.js'

type Approval = ReplyOf<'GET /api/tool-approvals'>['approvals'][number]
type Grant = ReplyOf<'GET /api/tool-approval-grants'>['grants'][number]
type Part = keyof typeof text.approvals.parts

const words = text.approvals
const grantWords = text.grants
const { fields } = text.manage

/** Tabs for tools, waiting calls, and remembered decisions. */
export function ToolTabs({ current }: { readonly current: Part }) {
  return (
    <nav class="tabs" aria-label={text.tools.title}>
      {(Object.keys(words.parts) as Part[]).map(name => (
        <a key={name} href={linkTo('manage', name)} aria-current={name === current ? 'page' : undefined}>
          {words.parts[name]}
        </a>
      ))}
    </nav>
  )
}

const approvals: ListView<Approval> = {
  name: 'approvals',
  title: words.title,
  command: 'svc tool approvals',
  load: async abort => (await api('GET /api/tool-approvals', {}, abort)).approvals,
  changes: /^(?:tool|session)\./,
  id: ({ id }) => id,
  columns: [
    { header: words.tool, cell: ({ tool_id: tool }) => <code>{tool}</code>, wide: true },
    { header: text.tools.risk, cell: ({ risk }) => risk.replaceAll('_', ' ') },
    { header: fields.agent, cell: ({ agent_name: agent }) => agent ?? '–' },
    { header: words.expires, cell: ({ expires_at: at }) => ago(at) },
  ],
  empty: words.none,
  detail: {
    title: ({ tool_id: tool }) => tool,
    command: ({ id }) => `svc tool approve ${id}`,
    show: (approval, reload) => <Decision key={approval.id} approval={approval} reload={reload} />,
  },
}

export const Approvals = ({ selected }: { readonly selected: string | undefined }) => (
  <List view={approvals} path={['manage', 'approvals']} selected={selected}>
    <ToolTabs current="approvals" />
  </List>
)

/** The input of a waiting call, with buttons that allow or reject it. */
function Decision({ approval, reload }: { readonly approval: Approval; readonly reload: () => void }) {
  const { id, session_id: session, agent_name: agent } = approval
  const decide = async (decision: 'allow' | 'reject', remember = '') => {
    await api('POST /api/tool-approvals/{id}/decide', {
      path: { id },
      body: { decision, ...(remember !== '' && { remember: remember as 'input' | 'agent' }) },
    })
    announce(decision === 'allow' ? words.approved : words.rejected)
    reload()
  }
  return (
    <>
      <Fields
        of={[
          [text.tools.risk, approval.risk.replaceAll('_', ' ')],
          [fields.agent, agent],
          [
            words.session,
            session && (
              <a key="session" href={linkTo('sessions', session)}>
                {session}
              </a>
            ),
          ],
          [words.expires, clock(approval.expires_at)],
        ]}
      />
      <h3>{words.input}</h3>
      <Code label={words.input}>{valueText(approval.input)}</Code>
      <Form
        label={words.approve}
        fields={[
          {
            ...{ name: 'remember', label: words.remember, kind: 'select', value: '', optional: true },
            options: Object.entries(words.remembers).filter(([value]) => value !== 'agent' || agent !== undefined),
          },
        ]}
        submit={({ remember }) => decide('allow', remember)}
      >
        {({ remember }) => (
          <div class="actions">
            <Action label={words.reject} tone="danger" run={() => decide('reject', remember)} />
          </div>
        )}
      </Form>
    </>
  )
}

/** The workspace whose grants are shown. */
const workspace = signal('')

const grants = (workspace_id: string): ListView<Grant> => ({
  name: `grants ${workspace_id}`,
  title: grantWords.title,
  command: 'svc tool grants list',
  load: async abort =>
    workspace_id === '' ? [] : (await api('GET /api/tool-approval-grants', { query: { workspace_id } }, abort)).grants,
  changes: /^tool\./,
  id: ({ id }) => id,
  columns: [
    { header: words.tool, cell: ({ tool_id: tool }) => <code>{tool}</code>, wide: true },
    { header: grantWords.decision, cell: ({ decision }) => <Badge of={decision} /> },
    { header: fields.agent, cell: ({ agent_name: agent }) => agent ?? grantWords.anyAgent },
    {
      header: grantWords.scope,
      cell: ({ input_digest: digest }) => (digest === undefined ? grantWords.anyInput : grantWords.oneInput),
    },
  ],
  empty: grantWords.none,
  create: {
    label: grantWords.add,
    command: 'svc tool grants put <tool>',
    show: done => <NewGrant workspace_id={workspace_id} done={done} />,
  },
  detail: {
    title: ({ tool_id: tool }) => tool,
    command: ({ id }) => `svc tool grants delete ${id}`,
    show: (grant, reload) => (
      <>
        <Fields
          of={[
            [grantWords.decision, <Badge key="decision" of={grant.decision} />],
            [fields.agent, grant.agent_name ?? grantWords.anyAgent],
            [grantWords.input, grant.input_digest],
            [grantWords.created, clock(grant.created_at)],
            [grantWords.used, ago(grant.last_used_at)],
          ]}
        />
        <Confirmed
          label={grantWords.revoke}
          question={grantWords.revokeQuestion(grant.tool_id)}
          run={async () => {
            await api('DELETE /api/tool-approval-grants/{id}', { path: { id: grant.id }, query: { workspace_id } })
            reload()
          }}
        />
      </>
    ),
  },
})

function NewGrant({ workspace_id, done }: { readonly workspace_id: string; readonly done: (id?: string) => void }) {
  const { data, error, reload } = useResource(async abort => {
    const [{ tools }, { agents }] = await Promise.all([
      api('GET /api/tools', { query: { source: 'all' } }, abort),
      api('GET /api/agents', {}, abort),
    ])
    return {
      tools: tools.map(({ descriptor }) => descriptor.tool_id),
      agents: [...new Set(agents.map(({ name }) => name))],
    }
  }, [])
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  return (
    <Form
      label={grantWords.add}
      fields={[
        {
          ...{ name: 'tool', label: words.tool, kind: 'select', value: data.tools[0] ?? '' },
          options: data.tools.map(id => [id, id] as const),
        },
        {
          ...{ name: 'decision', label: grantWords.decision, kind: 'select', value: 'allow' },
          options: Object.entries(grantWords.decisions),
        },
        {
          ...{ name: 'agent', label: fields.agent, kind: 'select', value: '', optional: true },
          options: [['', grantWords.anyAgent], ...data.agents.map(name => [name, name] as const)],
        },
      ]}
      submit={async ({ tool = '', decision, agent = '' }) => {
        const { grant } = await api('PUT /api/tool-approval-grants', {
          query: { workspace_id },
          body: {
            ...{ tool_id: tool, decision: decision as 'allow' | 'reject' },
            ...(agent === '' ? { scope: 'tool' } : { scope: 'agent', agent_name: agent }),
          },
        })
        done(grant.id)
      }}
    />
  )
}

export function Grants({ selected }: { readonly selected: string | undefined }) {
  const view = grants(workspace.value)
  return (
    <List key={view.name} view={view} path={['manage', 'grants']} selected={selected}>
      <ToolTabs current="grants" />
      <div class="filter">
        <WorkspaceChoice
          value={workspace.value}
          set={id => {
            workspace.value = id
          }}
        />
      </div>
    </List>
  )
}
