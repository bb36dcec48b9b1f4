import type { ReplyOf } from '../../core/api.js'
import { number } from '../../core/format.js'
import { linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import { Empty } from '../../ui/parts.js'
import { Plot } from '../../ui/plot.js'

type Overview = ReplyOf<'GET /api/observe/overview'>['overview']

const words = text.plots

/** Ended runs as a bar per day. */
export function Outcomes({ overview: { outcomes } }: { readonly overview: Overview }) {
  const of = (key: 'completed' | 'failed' | 'canceled') => outcomes.days.map(day => day[key])
  const series = [
    { label: text.home.completed, color: '--accent', values: of('completed') },
    { label: text.home.failed, color: '--bad', values: of('failed') },
    { label: text.home.canceled, color: '--muted', values: of('canceled') },
  ]
  const title = text.home.week(outcomes.window_days)
  return (
    <section aria-labelledby="outcomes">
      <h2 id="outcomes">{title}</h2>
      <dl class="inline-figures">
        <div>
          <dt>{text.home.success}</dt>
          <dd>{outcomes.completed + outcomes.failed > 0 ? `${Math.round(outcomes.success_pct)} %` : text.home.none}</dd>
        </div>
      </dl>
      {outcomes.completed + outcomes.failed + outcomes.canceled === 0 ? (
        <Empty>{words.noOutcomes}</Empty>
      ) : (
        <Plot label={title} data={{ days: outcomes.days.map(({ date }) => date), series }} />
      )}
    </section>
  )
}

const money = (amount: number, currency: string | undefined): string => {
  try {
    return new Intl.NumberFormat(undefined, { style: 'currency', currency: currency || 'USD' }).format(amount)
  } catch {
    // A provider may use a currency code that the browser does not know.
    return `${number.format(amount)} ${currency}`
  }
}

const WINDOWS = ['7', '30', '90'] as const
export type UsageWindow = (typeof WINDOWS)[number]

/** Tokens per day, their cost as far as providers report it, and the agents with the highest usage. */
export function Usage({
  overview: { usage },
  days,
  setDays,
}: {
  readonly overview: Overview
  readonly days: UsageWindow
  readonly setDays: (days: UsageWindow) => void
}) {
  const title = words.usage(usage.window_days)
  const cost = usage.estimated_cost
  return (
    <section aria-labelledby="usage">
      <div class="section-head">
        <h2 id="usage">{title}</h2>
        <label class="inline">
          <span class="unseen">{words.window}</span>
          <select value={days} onChange={event => setDays(event.currentTarget.value as UsageWindow)}>
            {WINDOWS.map(count => (
              <option key={count} value={count}>
                {words.days(count)}
              </option>
            ))}
          </select>
        </label>
      </div>
      <dl class="inline-figures">
        <div>
          <dt>{words.tokens}</dt>
          <dd>{number.format(usage.total_tokens)}</dd>
        </div>
        <div>
          <dt>{words.cost}</dt>
          <dd>
            {cost === undefined || cost === null ? text.home.none : money(cost, usage.cost_currency)}
            {usage.cost_status && <span class="muted"> {words.costs[usage.cost_status]}</span>}
          </dd>
        </div>
      </dl>
      {usage.total_tokens === 0 ? (
        <Empty>{words.noUsage}</Empty>
      ) : (
        <Plot
          label={title}
          data={{
            days: usage.days.map(({ date }) => date),
            series: [{ label: words.tokens, color: '--accent', values: usage.days.map(({ tokens }) => tokens) }],
          }}
        />
      )}
      {usage.agent_share.length > 0 && (
        <ul class="shares" aria-label={words.byAgent}>
          {usage.agent_share.slice(0, 6).map(({ agent_name: agent, tokens, fraction }) => (
            <li key={agent}>
              <span class="clip">{agent}</span>
              <meter min={0} max={1} value={fraction} aria-hidden="true" />
              <span class="muted">
                {number.format(tokens)} · {Math.round(fraction * 100)} %
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

const HOURS = Array.from({ length: 24 }, (_, hour) => hour)
const SIZE = 14

/** Activity by weekday and hour, as a square per hour: the more events, the darker. */
export function Pulse({ overview: { pulse } }: { readonly overview: Overview }) {
  const counts = new Map(pulse.buckets.map(({ weekday, hour, events }) => [weekday * 24 + hour, events]))
  const most = Math.max(0, ...counts.values())
  const countAt = (weekday: number, hour: number) => counts.get(weekday * 24 + hour) ?? 0
  const level = (count: number) => (count === 0 ? 0 : Math.ceil((count / most) * 4))
  const { busiest, longest_session: longest } = pulse
  return (
    <section aria-labelledby="pulse">
      <h2 id="pulse">{words.pulse(pulse.window_days)}</h2>
      {most === 0 ? (
        <Empty>{words.noPulse}</Empty>
      ) : (
        <>
          <p class="muted">
            {busiest &&
              words.busiest(words.weekdays[busiest.weekday] ?? '', busiest.hour, number.format(busiest.events))}
            {longest && (
              <>
                {' '}
                <a href={linkTo('sessions', longest.session_id)}>
                  {words.longest(longest.agent_name, Math.round(longest.duration_seconds / 60))}
                </a>
              </>
            )}
          </p>
          <svg class="pulse" viewBox={`0 0 ${24 * SIZE + 34} ${7 * SIZE + 16}`} aria-hidden="true">
            {words.weekdays.map((name, weekday) => (
              <g key={name}>
                <text x={0} y={weekday * SIZE + 10}>
                  {name.slice(0, 3)}
                </text>
                {HOURS.map(hour => (
                  <rect
                    key={hour}
                    class={`level-${level(countAt(weekday, hour))}`}
                    x={hour * SIZE + 34}
                    y={weekday * SIZE}
                    width={SIZE - 2}
                    height={SIZE - 2}
                    rx={2}
                  />
                ))}
              </g>
            ))}
            {[0, 6, 12, 18].map(hour => (
              <text key={hour} x={hour * SIZE + 34} y={7 * SIZE + 12}>
                {`${hour}:00`}
              </text>
            ))}
          </svg>
          <details class="as-table">
            <summary>{text.plots.table(words.pulse(pulse.window_days))}</summary>
            <div class="table" tabIndex={0} role="region" aria-label={words.pulse(pulse.window_days)}>
              <table>
                <thead>
                  <tr>
                    <th scope="col">{words.weekday}</th>
                    {HOURS.map(hour => (
                      <th key={hour} scope="col">
                        {hour}
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {words.weekdays.map((name, weekday) => (
                    <tr key={name}>
                      <th scope="row">{name}</th>
                      {HOURS.map(hour => (
                        <td key={hour}>{countAt(weekday, hour)}</td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </details>
        </>
      )}
    </section>
  )
}
