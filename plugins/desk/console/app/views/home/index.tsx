import { useEffect, useState } from 'preact/hooks'
import { api, type ReplyOf } from '../../core/api.js'
import { ago, number } from '../../core/format.js'
import { useResource } from '../../core/resource.js'
import { linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Columns } from '../../ui/columns.js'
import { Badge, Command, Empty, Fields, Loading, Page, Problem } from '../../ui/parts.js'
import { Outcomes, Pulse, Usage, type UsageWindow } from './plots.js'
import { PushChoice } from './push.js'

type Item = ReplyOf<'GET /api/notifications/attention'>['items'][number]
type Overview = ReplyOf<'GET /api/observe/overview'>['overview']
type Status = ReplyOf<'GET /api/status'>

/** Items that need attention, current work, today's outcomes, and plots of the last days. */
export function Home() {
  const [days, setDays] = useState<UsageWindow>('7')
  const [latest, keep] = useState<Overview>()
  const attention = useResource(
    signal => api('GET /api/notifications/attention', { query: { surface: 'home' } }, signal),
    [],
    /./,
  )
  const running = useResource(
    signal => api('GET /api/sessions', { query: { state: 'active', limit: 20 } }, signal),
    [],
    /^session\./,
  )
  const overview = useResource(
    signal => api('GET /api/observe/overview', { query: { usage_window: days } }, signal),
    [days],
    /^(?:task|automation|session)\./,
  )
  const status = useResource(signal => api('GET /api/status', {}, signal), [], /^(?:daemon|plugin|session)\./)
  const current = overview.data?.overview
  // The previous usage stays visible until the usage of another window is loaded.
  useEffect(() => {
    if (current) keep(current)
  }, [current])
  const data = current ?? latest
  return (
    <Columns>
      <Page title={text.views.home} command="svc overview">
        <Problem error={attention.error ?? overview.error ?? status.error} retry={attention.reload} />
        <section aria-labelledby="attention">
          <h2 id="attention">{text.home.attention}</h2>
          {!attention.data ? (
            <Loading />
          ) : (
            <Attention items={attention.data.items.filter(({ finished }) => !finished)} />
          )}
          <PushChoice />
        </section>
        {data && <Today overview={data} />}
        <div class="halves">
          <section aria-labelledby="running">
            <h2 id="running">{text.home.running}</h2>
            {running.data && running.data.sessions.length === 0 && <Empty>{text.home.idle}</Empty>}
            <ul class="rows">
              {running.data?.sessions.map(session => (
                <li key={session.id}>
                  <a href={linkTo('sessions', session.id)}>{session.name || session.id}</a>
                  <span class="muted">{session.agent_name}</span>
                  <Badge of={session.badge || session.state} />
                </li>
              ))}
            </ul>
          </section>
          <section aria-labelledby="daemon">
            <h2 id="daemon">{text.home.daemon}</h2>
            {status.data && <Daemon status={status.data} />}
          </section>
        </div>
        {data && (
          <div class="halves plots">
            <Outcomes overview={data} />
            <Usage overview={data} days={days} setDays={setDays} />
            <Pulse overview={data} />
          </div>
        )}
      </Page>
    </Columns>
  )
}

/** The view in which a person handles an item. */
function placeOf({ session_id: session, task_id: task }: Item): string | undefined {
  if (session) return linkTo('sessions', session)
  return task ? linkTo('work', task) : undefined
}

function Attention({ items }: { readonly items: readonly Item[] }) {
  if (items.length === 0) return <Empty>{text.home.nothing}</Empty>
  return (
    <ul class="cards">
      {items.map(item => {
        const to = placeOf(item)
        return (
          <li key={item.id} class="card attention">
            <Badge of={item.kind} />
            <div class="grow">
              {to ? <a href={to}>{item.title}</a> : <strong>{item.title}</strong>}
              <p class="muted clip">{item.detail}</p>
            </div>
            <span class="muted">{ago(item.occurred_at)}</span>
            {!to && item.command && <Command line={item.command} />}
          </li>
        )
      })}
    </ul>
  )
}

function Today({ overview: { today, usage } }: { readonly overview: Overview }) {
  const figures = [
    [text.home.completed, number.format(today.runs_completed)],
    [text.home.failed, number.format(today.runs_failed)],
    [text.home.closed, number.format(today.tasks_closed)],
    [text.home.tokens, number.format(usage.days.at(-1)?.tokens ?? 0)],
  ] as const
  return (
    <section aria-labelledby="today">
      <h2 id="today">{text.home.today}</h2>
      <dl class="figures">
        {figures.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

function Daemon({ status: { daemon, sessions } }: { readonly status: Status }) {
  return (
    <>
      <Fields
        of={[
          [text.home.status, <Badge of={daemon.status} />],
          [text.home.version, daemon.version],
          [text.home.started, ago(daemon.started_at)],
          [text.home.sessions, `${sessions.active} / ${sessions.total}`],
          [text.home.address, `${daemon.http_host}:${daemon.http_port}`],
        ]}
      />
      <Command line="svc status" />
    </>
  )
}
