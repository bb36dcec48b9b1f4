import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { ago, clock } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { go, linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Confirmed, Form } from '../../ui/form.js'
import type { ListView } from '../../ui/list.js'
import { Action, Badge, Code, Empty, Fields, Problem } from '../../ui/parts.js'
import { pairs } from '../manage/json.js'
import { agentField, useChoices, workspaceField } from './choices.js'
import { JobForm, Occurrences } from './job-form.js'

export type Job = ReplyOf<'GET /api/automation/jobs'>['jobs'][number]
type Trigger = ReplyOf<'GET /api/automation/triggers'>['triggers'][number]

const words = text.automation
const editor = text.jobEditor
const yes = (is: boolean) => (is ? words.yes : words.no)

/** @param edits whether the details of a job are its editor */
export const jobs = (edits: boolean): ListView<Job> => ({
  name: 'jobs',
  title: words.title,
  command: 'svc automation jobs list',
  load: async signal => (await api('GET /api/automation/jobs', { query: { limit: 200 } }, signal)).jobs,
  changes: /^(?:automation|job|record)/,
  id: ({ id }) => id,
  columns: [
    { header: words.name, cell: ({ name }) => name, wide: true },
    {
      header: words.schedule,
      cell: ({ schedule_text: said, schedule }) => (
        <span class="clip value">{said ?? schedule?.expr ?? schedule?.interval ?? '–'}</span>
      ),
    },
    { header: words.next, cell: ({ enabled, next_run: next }) => (enabled ? ago(next) : '–') },
    { header: words.last, cell: ({ last_run: run }) => (run ? <Badge of={run.status} /> : '–') },
    { header: words.enabled, cell: ({ enabled }) => yes(enabled) },
  ],
  empty: words.noJobs,
  create: {
    label: editor.create,
    command: 'svc automation jobs create',
    show: done => <JobForm done={done} />,
  },
  detail: {
    title: ({ name }) => name,
    command: ({ id }) => (edits ? `svc automation jobs update ${id}` : `svc automation jobs get ${id}`),
    show: (job, reload) =>
      edits ? (
        <JobForm
          key={job.id}
          job={job}
          done={id => {
            reload()
            go('automation', 'jobs', id)
          }}
        />
      ) : (
        <JobDetails key={job.id} job={job} reload={reload} />
      ),
  },
})

function JobDetails({ job, reload }: { readonly job: Job; readonly reload: () => void }) {
  const at = { path: { id: job.id } }
  const isOwn = job.source === 'dynamic'
  return (
    <>
      <div class="actions">
        <Action
          label={words.run}
          tone="primary"
          run={async () => {
            await api('POST /api/automation/jobs/{id}/trigger', at)
            announce(words.started)
            reload()
          }}
        />
        <Action
          label={job.enabled ? words.disable : words.enable}
          run={async () => {
            await api('PATCH /api/automation/jobs/{id}', { ...at, body: { enabled: !job.enabled } })
            reload()
          }}
        />
        {isOwn && (
          <a class="button" href={linkTo('automation', 'jobs', job.id, 'edit')}>
            {editor.edit}
          </a>
        )}
        {isOwn && (
          <Confirmed
            label={editor.remove}
            question={editor.removeQuestion(job.name)}
            run={async () => {
              await api('DELETE /api/automation/jobs/{id}', at)
              reload()
            }}
          />
        )}
      </div>
      {!isOwn && <p class="muted">{editor.readOnly}</p>}
      <Fields
        of={[
          [words.enabled, yes(job.enabled)],
          [words.schedule, job.schedule_text],
          [words.next, job.enabled && clock(job.next_run)],
          [words.last, job.last_run && `${job.last_run.status} ${ago(job.last_run.started_at)}`],
          [words.agent, job.agent_name],
          [words.source, job.source],
        ]}
      />
      {job.schedule && job.enabled && <Occurrences of={job.schedule} />}
      <h3>{words.prompt}</h3>
      <Code label={words.prompt}>{job.prompt}</Code>
      <Runs of={{ job_id: job.id }} />
    </>
  )
}

/** The latest runs of a job or trigger, the newest first. */
function Runs({ of: query }: { readonly of: { readonly job_id?: string; readonly trigger_id?: string } }) {
  const { data, error, reload } = useResource(
    async signal => (await api('GET /api/automation/runs', { query: { ...query, limit: 20 } }, signal)).runs,
    [query],
    /^(?:automation|job|trigger)/,
  )
  return (
    <>
      <h3>{editor.runs}</h3>
      <Problem error={error} retry={reload} />
      {data?.length === 0 && <Empty>{editor.noRuns}</Empty>}
      <ul class="rows">
        {data?.map(run => (
          <li key={run.id}>
            <Badge of={run.status} />
            <span class="grow">{clock(run.started_at ?? run.scheduled_at)}</span>
            {run.session_id && <a href={linkTo('sessions', run.session_id)}>{text.sessions.name}</a>}
            {run.error && <p class="failure">{run.error}</p>}
          </li>
        ))}
      </ul>
    </>
  )
}

export const triggers: ListView<Trigger> = {
  name: 'triggers',
  title: words.title,
  command: 'svc automation triggers list',
  load: async signal => (await api('GET /api/automation/triggers', { query: { limit: 200 } }, signal)).triggers,
  changes: /^(?:automation|trigger|record)/,
  id: ({ id }) => id,
  columns: [
    { header: words.name, cell: ({ name }) => name, wide: true },
    { header: words.event, cell: ({ event }) => <code>{event}</code> },
    { header: words.agent, cell: ({ agent_name: agent }) => agent },
    { header: words.enabled, cell: ({ enabled }) => yes(enabled) },
  ],
  empty: words.noTriggers,
  create: {
    label: text.triggerEditor.create,
    command: 'svc automation triggers create',
    show: done => <TriggerForm done={done} />,
  },
  detail: {
    title: ({ name }) => name,
    command: ({ id }) => `svc automation triggers get ${id}`,
    show: (trigger, reload) => {
      const at = { path: { id: trigger.id } }
      return (
        <>
          <div class="actions">
            <Action
              label={trigger.enabled ? words.disable : words.enable}
              run={async () => {
                await api('PATCH /api/automation/triggers/{id}', { ...at, body: { enabled: !trigger.enabled } })
                reload()
              }}
            />
            {trigger.source === 'dynamic' && (
              <Confirmed
                label={editor.remove}
                question={editor.removeQuestion(trigger.name)}
                run={async () => {
                  await api('DELETE /api/automation/triggers/{id}', at)
                  reload()
                }}
              />
            )}
          </div>
          <Fields
            of={[
              [words.enabled, yes(trigger.enabled)],
              [words.event, trigger.event],
              [text.triggerEditor.filter, trigger.filter && JSON.stringify(trigger.filter)],
              [words.agent, trigger.agent_name],
              [words.source, trigger.source],
            ]}
          />
          <h3>{words.prompt}</h3>
          <Code label={words.prompt}>{trigger.prompt}</Code>
          <Runs of={{ trigger_id: trigger.id }} />
        </>
      )
    },
  },
}

function TriggerForm({ done }: { readonly done: (id?: string) => void }) {
  const choices = useChoices()
  if (!choices) return null
  return (
    <Form
      label={editor.add}
      fields={[
        { name: 'name', label: words.name },
        { name: 'event', label: words.event, hint: text.triggerEditor.eventHint },
        {
          name: 'filter',
          label: text.triggerEditor.filter,
          kind: 'area',
          optional: true,
          hint: text.triggerEditor.filterHint,
        },
        agentField(choices),
        workspaceField(choices),
        { name: 'prompt', label: words.prompt, kind: 'area' },
      ]}
      submit={async ({ name = '', event = '', filter = '', agent = '', workspace = '', prompt = '' }) => {
        const { trigger } = await api('POST /api/automation/triggers', {
          body: {
            ...{ name, event, agent_name: agent, prompt },
            ...(filter !== '' && { filter: pairs(filter) }),
            ...(workspace === '' ? { scope: 'global' } : { scope: 'workspace', workspace_id: workspace }),
          },
        })
        done(trigger.id)
      }}
    />
  )
}
