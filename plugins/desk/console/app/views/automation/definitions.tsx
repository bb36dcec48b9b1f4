import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { ago, clock } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { go, linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Confirmed } from '../../ui/form.js'
import type { ListView } from '../../ui/list.js'
import { Action, Badge, Code, Empty, Fields, Problem } from '../../ui/parts.js'
import { JobForm, Occurrences } from './job-form.js'
import { FreshSecret, TestDelivery, type Trigger, TriggerForm } from './trigger-form.js'

export type Job = ReplyOf<'GET /api/automation/jobs'>['jobs'][number]

const words = text.automation
const editor = text.jobEditor
const trigWords = text.triggerEditor
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

/** The latest runs of a job or trigger, newest first. */
function Runs({
  of: query,
  title = editor.runs,
}: {
  readonly of: { readonly job_id?: string; readonly trigger_id?: string }
  readonly title?: string
}) {
  const { data, error, reload } = useResource(
    async signal => (await api('GET /api/automation/runs', { query: { ...query, limit: 20 } }, signal)).runs,
    [query],
    /^(?:automation|job|trigger)/,
  )
  return (
    <>
      <h3>{title}</h3>
      <Problem error={error} retry={reload} />
      {data?.length === 0 && <Empty>{editor.noRuns}</Empty>}
      <ul class="rows">
        {data?.map(run => (
          <li key={run.id}>
            <Badge of={run.status} />
            <span class="grow">{clock(run.started_at ?? run.scheduled_at)}</span>
            {run.session_id && <a href={linkTo('sessions', run.session_id)}>{text.sessions.name}</a>}
            {run.error && <p class="failure">{run.error}</p>}
            {run.delivery_error && <p class="failure">{run.delivery_error}</p>}
          </li>
        ))}
      </ul>
    </>
  )
}

/** @param edits whether the details of a trigger are its editor */
export const triggers = (edits: boolean): ListView<Trigger> => ({
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
    command: ({ id }) => (edits ? `svc automation triggers update ${id}` : `svc automation triggers get ${id}`),
    show: (trigger, reload) =>
      edits ? (
        <TriggerForm
          key={trigger.id}
          trigger={trigger}
          done={id => {
            reload()
            go('automation', 'triggers', id)
          }}
        />
      ) : (
        <TriggerDetails key={trigger.id} trigger={trigger} reload={reload} />
      ),
  },
})

function TriggerDetails({ trigger, reload }: { readonly trigger: Trigger; readonly reload: () => void }) {
  const at = { path: { id: trigger.id } }
  const isOwn = trigger.source === 'dynamic'
  const { fire_limit: limit, webhook_endpoint: endpoint } = trigger
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
        {isOwn && (
          <a class="button" href={linkTo('automation', 'triggers', trigger.id, 'edit')}>
            {editor.edit}
          </a>
        )}
        {isOwn && (
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
      {!isOwn && <p class="muted">{editor.readOnly}</p>}
      <FreshSecret of={trigger.id} />
      <Fields
        of={[
          [words.enabled, yes(trigger.enabled)],
          [words.event, trigger.event],
          [trigWords.endpoint, endpoint && <code key="url">{new URL(endpoint, location.origin).href}</code>],
          [trigWords.scheme, endpoint && (trigger.webhook_scheme ?? 'service')],
          [trigWords.filter, trigger.filter && JSON.stringify(trigger.filter)],
          [trigWords.limit, trigWords.limited(limit.max, limit.window)],
          [words.agent, trigger.agent_name],
          [words.source, trigger.source],
        ]}
      />
      <h3>{words.prompt}</h3>
      <Code label={words.prompt}>{trigger.prompt}</Code>
      {trigger.event === 'webhook' && <TestDelivery id={trigger.id} />}
      <Runs of={{ trigger_id: trigger.id }} title={trigWords.deliveries} />
    </>
  )
}
