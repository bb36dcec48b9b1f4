import { useEffect, useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, faultText, type ReplyOf } from '../../core/api.js'
import { clock } from '../../core/format.js'
import { text } from '../../text.js'
import { Form, type FormField, type Values } from '../../ui/form.js'
import { Loading } from '../../ui/parts.js'
import { agentField, useChoices, workspaceField } from './choices.js'
import type { Job } from './definitions.js'

type Preview = ReplyOf<'GET /api/automation/occurrences'>
type Schedule = NonNullable<Job['schedule']>

const words = text.automation
const editor = text.jobEditor
/** The pause after the last key press before the occurrences are requested. */
const PAUSE_MS = 250

/** Creates or changes a job. */
export function JobForm({ job, done }: { readonly job?: Job; readonly done: (id: string) => void }) {
  const choices = useChoices()
  if (!choices) return <Loading />
  const schedule = job?.schedule ?? undefined
  const mode = (name: Schedule['mode']) => (values: Values) => values.mode === name
  const fields: readonly FormField[] = [
    { name: 'name', label: words.name, value: job?.name ?? '' },
    {
      ...{ name: 'mode', label: editor.when, kind: 'select', value: schedule?.mode ?? 'cron' },
      options: Object.entries(editor.modes),
    },
    {
      ...{ name: 'expr', label: editor.expr, value: schedule?.expr ?? '0 9 * * 1-5' },
      ...{ hint: editor.exprHint, applies: mode('cron') },
    },
    {
      ...{ name: 'timezone', label: editor.zone, value: schedule?.timezone ?? '', optional: true },
      ...{ hint: editor.zoneHint, applies: mode('cron') },
    },
    {
      ...{ name: 'interval', label: editor.interval, value: schedule?.interval ?? '1h' },
      ...{ hint: editor.intervalHint, applies: mode('every') },
    },
    {
      ...{ name: 'time', label: editor.time, kind: 'datetime', value: localTime(schedule?.time) },
      applies: mode('at'),
    },
    agentField(choices, job?.agent_name),
    ...(job ? [] : [workspaceField(choices)]),
    { name: 'prompt', label: words.prompt, kind: 'area', value: job?.prompt ?? '' },
  ]
  return (
    <Form
      label={job ? text.manage.save : editor.add}
      fields={fields}
      submit={async values => {
        const { name = '', agent: agent_name = '', prompt = '', workspace = '' } = values
        const body = { name, agent_name, prompt, schedule: { ...kept(schedule), ...scheduleOf(values) } }
        const reply = job
          ? await api('PATCH /api/automation/jobs/{id}', { path: { id: job.id }, body })
          : await api('POST /api/automation/jobs', {
              body: {
                ...body,
                ...(workspace === '' ? { scope: 'global' } : { scope: 'workspace', workspace_id: workspace }),
              },
            })
        announce(text.manage.saved)
        done(reply.job.id)
      }}
    >
      {values => <Occurrences of={scheduleOf(values)} />}
    </Form>
  )
}

/** Schedule members without a field, which are kept. */
const kept = ({ catch_up_policy: policy, misfire_grace_seconds: grace }: Partial<Schedule> = {}) => ({
  ...(policy && { catch_up_policy: policy }),
  ...(grace !== undefined && { misfire_grace_seconds: grace }),
})

function scheduleOf({ mode, expr = '', interval = '', time = '', timezone = '' }: Values): Schedule {
  if (mode === 'every') return { mode, interval }
  if (mode === 'at') return { mode, time: Number.isNaN(Date.parse(time)) ? time : rfc3339(time) }
  return { mode: 'cron', expr, ...(timezone !== '' && { timezone }) }
}

/** Times in the form have no zone; the browser's zone applies. */
const rfc3339 = (local: string) => `${new Date(local).toISOString().slice(0, 19)}Z`

function localTime(time: string | undefined): string {
  if (!time) return ''
  const at = new Date(time)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** A schedule in words and its next five occurrences, computed by the daemon, during typing. */
export function Occurrences({ of: schedule }: { readonly of: Schedule }) {
  const [state, set] = useState<{ preview?: Preview; problem?: string }>({})
  const { mode, expr, interval, time, timezone } = schedule
  const query = { mode, expr, interval, time, timezone, count: 5 }
  const key = JSON.stringify(query)
  useEffect(() => {
    const over = new AbortController()
    const timer = setTimeout(() => {
      api('GET /api/automation/occurrences', { query }, over.signal).then(
        preview => set({ preview }),
        error => over.signal.aborted || set({ problem: faultText(error) }),
      )
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      over.abort()
    }
  }, [key])
  const { preview, problem } = state
  return (
    <div class="panel occurrences" role="status" aria-label={editor.nextFive}>
      {problem !== undefined && <p class="failure">{problem}</p>}
      {preview && (
        <>
          <p class="said">{preview.text}</p>
          {preview.occurrences.length === 0 && <p class="muted">{editor.never}</p>}
          <ol>
            {preview.occurrences.map(at => (
              <li key={at}>
                <time dateTime={at}>{clock(at)}</time>
              </li>
            ))}
          </ol>
        </>
      )}
    </div>
  )
}
