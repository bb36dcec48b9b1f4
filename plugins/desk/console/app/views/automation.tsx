import { announce } from '../core/announce.js'
import { api, type ReplyOf } from '../core/api.js'
import { ago, clock } from '../core/format.js'
import { linkTo, place } from '../core/router.js'
import { text } from '../text.js'
import { List, type ListView } from '../ui/list.js'
import { Action, Badge, Code, Fields } from '../ui/parts.js'

type Job = ReplyOf<'GET /api/automation/jobs'>['jobs'][number]
type Trigger = ReplyOf<'GET /api/automation/triggers'>['triggers'][number]

const words = text.automation
const yes = (is: boolean) => (is ? words.yes : words.no)

const jobs: ListView<Job> = {
  name: 'jobs',
  title: words.title,
  command: 'svc automation jobs list',
  load: async signal => (await api('GET /api/automation/jobs', { query: { limit: 200 } }, signal)).jobs,
  changes: /^(?:automation|job)/,
  id: ({ id }) => id,
  columns: [
    { header: words.name, cell: ({ name }) => name, wide: true },
    {
      header: words.schedule,
      cell: ({ schedule_text: said, schedule }) => said ?? schedule?.expr ?? schedule?.interval ?? '–',
    },
    { header: words.next, cell: ({ enabled, next_run: next }) => (enabled ? ago(next) : '–') },
    { header: words.last, cell: ({ last_run: run }) => (run ? <Badge of={run.status} /> : '–') },
    { header: words.enabled, cell: ({ enabled }) => yes(enabled) },
  ],
  empty: words.noJobs,
  detail: {
    title: ({ name }) => name,
    command: ({ id }) => `svc automation jobs get ${id}`,
    show: (job, reload) => (
      <>
        <div class="actions">
          <Action
            label={words.run}
            tone="primary"
            run={async () => {
              await api('POST /api/automation/jobs/{id}/trigger', { path: { id: job.id } })
              announce(words.started)
              reload()
            }}
          />
          <Action
            label={job.enabled ? words.disable : words.enable}
            run={async () => {
              await api('PATCH /api/automation/jobs/{id}', { path: { id: job.id }, body: { enabled: !job.enabled } })
              reload()
            }}
          />
        </div>
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
        <h3>{words.prompt}</h3>
        <Code label={words.prompt}>{job.prompt}</Code>
      </>
    ),
  },
}

const triggers: ListView<Trigger> = {
  name: 'triggers',
  title: words.title,
  command: 'svc automation triggers list',
  load: async signal => (await api('GET /api/automation/triggers', { query: { limit: 200 } }, signal)).triggers,
  changes: /^(?:automation|trigger)/,
  id: ({ id }) => id,
  columns: [
    { header: words.name, cell: ({ name }) => name, wide: true },
    { header: words.event, cell: ({ event }) => <code>{event}</code> },
    { header: words.agent, cell: ({ agent_name: agent }) => agent },
    { header: words.enabled, cell: ({ enabled }) => yes(enabled) },
  ],
  empty: words.noTriggers,
  detail: {
    title: ({ name }) => name,
    command: ({ id }) => `svc automation triggers get ${id}`,
    show: (trigger, reload) => (
      <>
        <div class="actions">
          <Action
            label={trigger.enabled ? words.disable : words.enable}
            run={async () => {
              await api('PATCH /api/automation/triggers/{id}', {
                path: { id: trigger.id },
                body: { enabled: !trigger.enabled },
              })
              reload()
            }}
          />
        </div>
        <Fields
          of={[
            [words.enabled, yes(trigger.enabled)],
            [words.event, trigger.event],
            [words.agent, trigger.agent_name],
            [words.source, trigger.source],
          ]}
        />
        <h3>{words.prompt}</h3>
        <Code label={words.prompt}>{trigger.prompt}</Code>
      </>
    ),
  },
}

/** Jobs and triggers. */
export function Automation() {
  const [, part = 'jobs', id] = place.value
  const tabs = (
    <nav class="tabs" aria-label={words.title}>
      <a href={linkTo('automation', 'jobs')} aria-current={part !== 'triggers' ? 'page' : undefined}>
        {words.jobs}
      </a>
      <a href={linkTo('automation', 'triggers')} aria-current={part === 'triggers' ? 'page' : undefined}>
        {words.triggers}
      </a>
    </nav>
  )
  if (part === 'triggers')
    return (
      <List key="triggers" view={triggers} path={['automation', 'triggers']} selected={id}>
        {tabs}
      </List>
    )
  return (
    <List key="jobs" view={jobs} path={['automation', 'jobs']} selected={id}>
      {tabs}
    </List>
  )
}
