import { useState } from 'preact/hooks'
import { api, type ReplyOf } from '../../core/api.js'
import { ago, clock, number } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { go, linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { ConfirmAction } from '../../ui/confirm.js'
import { Action, Badge, Command, Empty, Fields, Loading, Problem } from '../../ui/parts.js'
import { Changes } from './changes.js'
import type { Task } from './index.js'

type Budget = ReplyOf<'GET /api/budgets'>['budgets'][number]

const words = text.runs
const OPEN = ['queued', 'claimed', 'starting', 'running', 'needs_attention']

/** Runs of all tasks, newest first. */
export function Runs({ tasks, selected }: { readonly tasks: readonly Task[]; readonly selected: string | undefined }) {
  const { data, error, reload } = useResource(
    signal => api('GET /api/task-runs', { query: { limit: 100 } }, signal),
    [],
    /^task\./,
  )
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  if (data.runs.length === 0) return <Empty command="svc task run enqueue">{words.none}</Empty>
  const titles = new Map(tasks.map(({ id, title }) => [id, title]))
  return (
    <div class="table" tabIndex={0} role="region" aria-label={words.title}>
      <table>
        <thead>
          <tr>
            <th scope="col" class="wide">
              {words.task}
            </th>
            <th scope="col">{text.work.attempt}</th>
            <th scope="col">{text.work.status}</th>
            <th scope="col">{words.lease}</th>
            <th scope="col">{words.changed}</th>
          </tr>
        </thead>
        <tbody>
          {data.runs.map(run => (
            <tr key={run.id} class={run.id === selected ? 'selected' : ''}>
              <td class="wide">
                <a href={linkTo('work', 'runs', run.id)} aria-current={run.id === selected ? 'true' : undefined}>
                  {titles.get(run.task_id) ?? run.task_id}
                </a>
              </td>
              <td>{run.attempt}</td>
              <td>
                <Badge of={run.status} />
              </td>
              <td>{OPEN.includes(run.status) ? ago(run.lease_until) : text.home.none}</td>
              <td>{ago(run.ended_at ?? run.started_at ?? run.claimed_at ?? run.queued_at)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A run: its lease, the rest of its task's budget, and its worktree with the changes. */
export function OneRun({ id }: { readonly id: string }) {
  const { data, error, reload } = useResource(
    signal => api('GET /api/task-runs/{id}', { path: { id } }, signal),
    [id],
    /^task\./,
  )
  const budgets = useResource(signal => api('GET /api/budgets', {}, signal), [id], /^(?:task|budget)/)
  const [isShown, show] = useState(false)
  if (!data) return error === undefined ? <Loading /> : <Problem error={error} retry={reload} />
  const { run, task, session, worktree } = data.run
  const then = (act: () => Promise<unknown>) => async () => {
    await act()
    reload()
  }
  const at = { path: { id } }
  const limits = (budgets.data?.budgets ?? []).filter(
    ({ kind, ref }) => ref === (kind === 'task' ? run.task_id : session?.agent_name),
  )
  return (
    <div class="detail">
      <header>
        <h2>{task?.title ?? run.task_id}</h2>
        <button type="button" class="quiet" onClick={() => go('work', 'runs')}>
          {text.close}
        </button>
      </header>
      <Command line={`svc task run show ${run.id}`} />
      <div class="actions">
        {OPEN.includes(run.status) && (
          <ConfirmAction
            label={words.cancel}
            title={words.cancelTitle}
            tone="danger"
            run={then(() => api('POST /api/task-runs/{id}/cancel', { ...at, body: {} }))}
          />
        )}
        {['failed', 'canceled'].includes(run.status) && (
          <Action label={words.retry} run={then(() => api('POST /api/runs/{id}/retry', { ...at, body: {} }))} />
        )}
      </div>
      <Fields
        of={[
          [text.work.status, <Badge of={run.status} />],
          [words.task, <a href={linkTo('work', run.task_id)}>{task?.title ?? run.task_id}</a>],
          [text.work.attempt, run.attempt],
          [
            text.sessions.name,
            run.session_id && <a href={linkTo('sessions', run.session_id)}>{session?.name || run.session_id}</a>,
          ],
          [words.lease, run.lease_until && OPEN.includes(run.status) && clock(run.lease_until)],
          [words.heartbeat, run.heartbeat_at && ago(run.heartbeat_at)],
          [words.claimed, run.claimed_at && ago(run.claimed_at)],
          [text.work.ended, run.ended_at && clock(run.ended_at)],
          [text.work.error, run.error],
          [
            text.worktrees.name,
            worktree && session?.workspace_id && (
              <a href={linkTo('work', 'worktrees', session.workspace_id, worktree.name)}>{worktree.name}</a>
            ),
          ],
          [words.branch, worktree?.branch],
          [text.sessions.folder, worktree?.folder],
        ]}
      />
      <h3>{words.budget}</h3>
      {limits.length === 0 && <p class="muted">{words.noBudget}</p>}
      {limits.map(budget => (
        <Spent key={`${budget.kind} ${budget.ref}`} budget={budget} />
      ))}
      {run.session_id && session?.workspace_id && (
        <>
          <h3>{words.changes}</h3>
          {isShown ? (
            <Changes at={{ workspace_id: session.workspace_id, session_id: run.session_id }} />
          ) : (
            <div class="actions">
              <button type="button" onClick={() => show(true)}>
                {words.showChanges}
              </button>
            </div>
          )}
        </>
      )}
    </div>
  )
}

const KEYS = ['tokens', 'cost_usd', 'wall_seconds'] as const

function Spent({ budget }: { readonly budget: Budget }) {
  return (
    <dl class="fields">
      {KEYS.flatMap(key => {
        const limit = budget.limit[key]
        if (limit === undefined || limit === null) return []
        const spent = budget.spent[key] ?? 0
        return [
          <div key={key}>
            <dt>{words.units[key]}</dt>
            <dd>
              {words.spent(number.format(spent), number.format(limit))}
              <meter class="spent" min={0} max={limit} value={spent} aria-hidden="true" />
            </dd>
          </div>,
        ]
      })}
    </dl>
  )
}
