import { clip } from '../../../../kernel/kit/text.js'
import { iso } from '../../../../kernel/plugin.js'
import type { SupportArtifact } from '../../../../schemas/daemon/support.js'

/** Most entries of each list. */
const MOST = 20
const HOUR_MS = 3_600_000
const TEXT = 300

interface Parts {
  /** Contents by path: parsed JSON, or text. */
  readonly parts: ReadonlyMap<string, unknown>
  readonly artifacts: readonly SupportArtifact[]
  readonly about: string
  readonly at: number
}

interface Finding {
  readonly severity?: string
  readonly id?: string
  readonly title?: string
  readonly message?: string
  readonly suggested_command?: string
}
interface EventLine {
  readonly timestamp: string
  readonly type: string
  readonly summary?: string
  readonly failure?: true
}
interface Line {
  readonly level?: string
  readonly time?: string
  readonly plugin?: string
  readonly msg?: string
  readonly error?: unknown
}
interface Activity {
  readonly session_id: string
  readonly status?: string
  readonly turn_started_at?: string
  readonly elapsed_seconds?: number
  readonly idle_seconds?: number
  readonly last_activity_kind?: string
}
interface Sample {
  readonly t: string
  readonly delay_ms: number
  readonly rss_mb: number
}

/** Events and log lines about recovery actions of the daemon. */
const REMEDY =
  /^(?:plugin\.(?:unloaded|loaded)|restart\.|daemon\.(?:started|draining|active)|extension\.|sandbox\.|audit\.|config\.|session\.(?:stopped|repaired)|task\.(?:run_requeued|run_recovered|lease_expired))/
const REMEDY_WORDS =
  /\b(?:restart|restarted|recovered|repaired|quarantined?|disabled|left out|skipped|dropped|ended|killed|kept apart|safe mode|back-?off|again)\b/i

const listOf = <T>(part: unknown, member: string): readonly T[] => {
  const list = Object(part)[member]
  return Array.isArray(list) ? list : []
}
/** A text without ids and numbers, so that messages with the same cause are equal. */
const withoutIds = (text: string) => text.replace(/[0-9a-f]{8,}|\d+/g, '…')
const short = (text: unknown) => clip(`${text ?? ''}`.replace(/\s+/g, ' '), TEXT)

/** A summary of problems, recovery actions and next steps, made from the other files of the bundle. */
export function summaryOf({ parts, artifacts, about, at }: Parts): string {
  const logLines = linesOf(parts.get('logs-tail.txt'))
  const events = listOf<EventLine>(parts.get('event-summaries.json'), 'events')
  const wrong = [
    ...findings(parts.get('doctor.json')),
    ...state(parts.get('status.json')),
    ...failedEvents(events),
    ...loggedErrors(logLines),
    ...failedSessions(parts.get('sessions.json')),
    ...slowness(parts.get('liveness.json')),
  ]
  const turns = underWay(parts.get('status.json'), parts.get('sessions.json'))
  const done = remedies(events, logLines)
  const missing = artifacts.filter(({ included }) => !included)
  const cut = artifacts.filter(({ truncated }) => truncated)
  const sections = [
    `# Support bundle\n\n${about}\nMade at ${iso(at)}.`,
    `## What is wrong\n\n${wrong.length === 0 ? 'Nothing was found.' : wrong.join('\n')}`,
    ...(turns.length === 0 ? [] : [`## What is under way\n\n${turns.join('\n')}`]),
    `## What the daemon did\n\n${done.length === 0 ? 'Nothing is recorded.' : done.join('\n')}`,
    `## What to look at\n\n${lookAt(wrong.length > 0, events, logLines).join('\n')}`,
    ...(missing.length === 0
      ? []
      : [`## What is missing\n\n${missing.map(({ path, omitted_reason: why }) => `- ${path}: ${why}`).join('\n')}`]),
    ...(cut.length === 0 ? [] : [`## What was cut\n\n${cut.map(({ path }) => `- ${path}`).join('\n')}`]),
  ]
  return `${sections.join('\n\n')}\n`
}

function findings(doctor: unknown): string[] {
  const items = listOf<Finding>(doctor, 'items').filter(({ severity }) => severity !== 'info')
  return items.slice(0, MOST).map(({ severity, id, title = '', message = '', suggested_command: next }) => {
    const help = next === undefined ? '' : ` Try: \`${next}\`.`
    // The title names the subject of the message, such as a bridge.
    const text = title === '' || message.startsWith(title) ? message : `${title}: ${message}`
    return `- ${severity}: ${short(text)} (${id} in doctor.json).${help}`
  })
}

function state(status: unknown): string[] {
  const { daemon, health } = Object(status)
  const plugins = listOf<{ name: string; status: string; reason?: string }>(health, 'plugins')
  const troubled = plugins.filter(({ status: is }) => is === 'failed' || is === 'waiting')
  return [
    ...(daemon && daemon.status !== 'ok' ? [`- The daemon is ${short(daemon.status)} (status.json).`] : []),
    ...troubled.map(({ name, status: is, reason }) => `- The plugin ${name} is ${is}: ${short(reason)} (status.json).`),
  ]
}

/** Running turns, the longest idle first: an unresponsive agent is not a failure yet. */
function underWay(status: unknown, sessions: unknown): string[] {
  const agents = new Map(
    listOf<Record<string, unknown>>(sessions, 'sessions').map(({ id, agent_name: of }) => [id, of]),
  )
  const activities = listOf<Activity>(Object(status).health, 'activities')
  return [...activities]
    .sort((a, b) => (b.idle_seconds ?? 0) - (a.idle_seconds ?? 0))
    .slice(0, MOST)
    .map(({ session_id: id, status: is, turn_started_at: since, idle_seconds: idle, last_activity_kind: kind }) => {
      const agent = agents.get(id)
      const turn = since === undefined ? '' : `, in a turn since ${since}`
      const silent = idle === undefined ? '' : `, nothing heard for ${idle} s${kind ? ` (last: ${kind})` : ''}`
      return `- The session ${id}${agent === undefined ? '' : ` of ${agent}`} is ${is}${turn}${silent} (status.json). Try: \`svc session health ${id}\`.`
    })
}

function failedEvents(events: readonly EventLine[]): string[] {
  const byCause = new Map<string, { count: number; readonly last: EventLine }>()
  for (const event of events) {
    if (!event.failure) continue
    const key = `${event.type} ${withoutIds(event.summary ?? '')}`
    const known = byCause.get(key)
    if (known) known.count++
    else byCause.set(key, { count: 1, last: event })
  }
  return [...byCause.values()].slice(0, MOST).map(({ count, last }) => {
    const times = count === 1 ? 'once' : `${count} times, the last`
    return `- ${last.type} happened ${times} at ${last.timestamp}: ${short(last.summary)} (event-summaries.json).`
  })
}

function loggedErrors(lines: readonly Line[]): string[] {
  const byText = new Map<string, { count: number; last: Line }>()
  for (const line of lines) {
    if (line.level !== 'error' && line.level !== 'warn') continue
    const key = `${line.level} ${line.plugin ?? ''} ${withoutIds(line.msg ?? '')}`
    const known = byText.get(key)
    byText.set(key, { count: (known?.count ?? 0) + 1, last: line })
  }
  const worst = [...byText.values()].sort((a, b) => Number(b.last.level === 'error') - Number(a.last.level === 'error'))
  return worst.slice(0, MOST).map(({ count, last }) => {
    const where = last.plugin === undefined ? '' : ` of ${last.plugin}`
    const error = typeof last.error === 'string' ? ` (${short(last.error)})` : ''
    const times = count === 1 ? '' : ` ${count} times, the last`
    return `- The log has the ${last.level === 'error' ? 'error' : 'warning'}${where}${times} at ${last.time ?? 'an unknown time'}: ${short(last.msg)}${error} (logs-tail.txt).`
  })
}

function failedSessions(sessions: unknown): string[] {
  const failed = listOf<Record<string, unknown>>(sessions, 'sessions').filter(({ failure_kind: kind }) => kind)
  return failed
    .slice(0, MOST)
    .map(
      ({ id, agent_name, failure_kind, failure_summary, updated_at }) =>
        `- The session ${id} of ${agent_name} failed (${failure_kind}) at ${updated_at}: ${short(failure_summary)} (sessions.json).`,
    )
}

function slowness(liveness: unknown): string[] {
  const samples = listOf<Sample>(liveness, 'samples')
  const slow = samples.filter(({ delay_ms: delay }) => delay >= 1000)
  const worst = slow.reduce<Sample | undefined>((a, b) => (a && a.delay_ms >= b.delay_ms ? a : b), undefined)
  const found = worst
    ? [
        `- The event loop of the daemon was blocked for ${worst.delay_ms} ms shortly before ${worst.t}; samples with over 1 s: ${slow.length} (liveness.json).`,
      ]
    : []
  const [first, last] = [samples[0], samples.at(-1)]
  if (first && last && Date.parse(last.t) - Date.parse(first.t) > HOUR_MS && last.rss_mb > 2 * first.rss_mb)
    found.push(`- Memory grew from ${first.rss_mb} to ${last.rss_mb} MB since ${first.t} (liveness.json).`)
  return found
}

function remedies(events: readonly EventLine[], lines: readonly Line[]): string[] {
  const eventLines = events
    .filter(({ type }) => REMEDY.test(type))
    .slice(0, MOST)
    .map(({ timestamp, type, summary }) => `- ${timestamp} ${type}${summary ? `: ${short(summary)}` : ''}`)
  const logged = lines
    .filter(({ level, msg }) => level !== 'debug' && REMEDY_WORDS.test(msg ?? ''))
    .slice(-MOST)
    .map(({ time, plugin, msg }) => `- ${time ?? ''} ${plugin ? `${plugin}: ` : ''}${short(msg)}`)
  return [...eventLines, ...logged]
}

function lookAt(isWrong: boolean, events: readonly EventLine[], lines: readonly Line[]): string[] {
  const first = events.findLast(({ failure }) => failure)
  const error = lines.find(({ level }) => level === 'error')
  return [
    ...(isWrong ? ['- doctor.json: each problem with the command that fixes it.'] : []),
    ...(first
      ? [`- event-summaries.json from ${first.timestamp} on: the first failure on record is ${first.type}.`]
      : []),
    ...(error
      ? [`- logs-tail.txt from ${error.time ?? 'the first line of level error'} on: the first error of the log.`]
      : []),
    '- config-apply-records.json: which settings changed, and when.',
    '- versions.json and home-tree.json: what runs here, and sizes and permissions of files.',
    '- manifest.json: what is in this bundle and what is not.',
  ]
}

/** Log lines. A line that is not JSON was written without the logger, so it counts as an error. */
function linesOf(text: unknown): Line[] {
  if (typeof text !== 'string') return []
  return text.split('\n').flatMap(line => {
    if (line === '') return []
    try {
      return [Object(JSON.parse(line)) as Line]
    } catch {
      return [{ level: 'error', msg: line }]
    }
  })
}
