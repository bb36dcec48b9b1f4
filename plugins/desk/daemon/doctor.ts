import * as v from 'valibot'
import { shown } from '../../../kernel/kit/text.js'
import { type Clock, iso, messageOf } from '../../../kernel/plugin.js'
import type { DoctorQuery, DoctorReply } from '../../../schemas/daemon.js'
import { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { type Check, DaemonErrors, finding, PROBING_DEADLINE_MS, type Severity } from './api.js'

/** Milliseconds before a probe times out. */
export const PROBE_DEADLINE_MS = 5000

/** Most urgent first. */
const SEVERITIES: readonly Severity[] = ['critical', 'error', 'warning', 'info']
/** A validated item of a probe: the severity must be known, since unknown ones are not counted. */
const Item = v.object({ ...DiagnosticItem.entries, severity: v.picklist(SEVERITIES) })

/**
 * Runs the probes that a query names concurrently, and reports their items: most urgent first, then by id.
 * Throws `unknown_component` for a name that is neither a probe nor a category.
 */
export async function runDoctor(
  checks: readonly Check[],
  query: DoctorQuery,
  clock: Clock,
  signal: AbortSignal,
): Promise<DoctorReply> {
  const startedAt = clock.monotonic()
  const generatedAt = iso(clock.now())
  const chosen = choose(checks, names(query.only), names(query.exclude))
  const found = (await Promise.all(chosen.map(check => probe(check, query.probe === true, clock, signal)))).flat()
  const items = found.filter(item => !(query.quiet && isFine(item))).sort(byUrgency)
  return {
    schema_version: '1',
    generated_at: generatedAt,
    duration_ms: Math.max(0, Math.round(clock.monotonic() - startedAt)),
    status: worst(items),
    summary: { total: items.length, counts_by_severity: counts(items) },
    items,
  }
}

/** Whether an item reports success; `quiet` omits such items. */
export function isFine(item: DiagnosticItem): boolean {
  return item.severity === 'info' && /_(ok|ready)$/.test(item.code)
}

function names(list: string | undefined): string[] {
  return (list ?? '')
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '')
}

function choose(checks: readonly Check[], only: readonly string[], exclude: readonly string[]): readonly Check[] {
  const known = [...new Set(checks.flatMap(check => [check.id, check.category]))].sort()
  const unknown = [...only, ...exclude].find(name => !known.includes(name))
  if (unknown !== undefined) {
    throw DaemonErrors.unknown_component(`doctor knows no probe or category ${shown(unknown)}`, {
      details: { known: known.join(', ') },
    })
  }
  const named = (list: readonly string[], check: Check) => list.includes(check.id) || list.includes(check.category)
  return checks.filter(check => (only.length === 0 || named(only, check)) && !named(exclude, check))
}

async function probe(check: Check, isProbing: boolean, clock: Clock, signal: AbortSignal): Promise<DiagnosticItem[]> {
  const deadline = new AbortController()
  const probing = isProbing ? check.probe : undefined
  const bound = probing ? PROBING_DEADLINE_MS : PROBE_DEADLINE_MS
  const timer = clock.timeout(bound, () => deadline.abort(), { unref: true })
  const late = new Promise<'late'>(resolve => deadline.signal.addEventListener('abort', () => resolve('late')))
  try {
    // The async wrapper turns a synchronous throw of the probe into a rejection.
    const work = (async () => (probing ?? check.run)(AbortSignal.any([signal, deadline.signal])))()
    const result = await Promise.race([work, late])
    if (result !== 'late') return v.parse(v.array(Item), result)
    const message = `the probe ${check.id} did not answer within ${bound / 1000} seconds`
    return [failure(check, 'probe_timeout', 'warning', 'Probe timed out', message)]
  } catch (error) {
    return [
      failure(check, 'probe_failed', 'error', 'Probe failed', `the probe ${check.id} failed: ${messageOf(error)}`),
    ]
  } finally {
    timer.cancel()
  }
}

function failure(check: Check, code: string, severity: string, title: string, message: string): DiagnosticItem {
  return finding({ id: check.id, code, category: check.category, severity, title, message })
}

const rank = (severity: string) => SEVERITIES.indexOf(severity as Severity)

function byUrgency(a: DiagnosticItem, b: DiagnosticItem): number {
  const urgency = rank(a.severity) - rank(b.severity)
  if (urgency !== 0) return urgency
  return a.id === b.id ? compare(a.code, b.code) : compare(a.id, b.id)
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

function counts(items: readonly DiagnosticItem[]): Record<string, number> {
  const totals: Record<string, number> = {}
  for (const { severity } of items) totals[severity] = (totals[severity] ?? 0) + 1
  return totals
}

/** `ok`, `warning` or `error`: the most urgent severity. Information counts as `ok`. */
function worst(items: readonly DiagnosticItem[]): string {
  if (items.some(item => rank(item.severity) <= 1)) return 'error'
  return items.some(item => rank(item.severity) === 2) ? 'warning' : 'ok'
}
