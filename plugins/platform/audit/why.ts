import { clip, shown } from '../../../kernel/kit/text.js'
import { iso, turn } from '../../../kernel/plugin.js'
import type { WhyReply, WhyStep } from '../../../schemas/daemon/audit.js'
import { type NamedActor, namedActor } from '../../access/identity/api.js'
import type { EventsApi, StoredEvent } from '../events/api.js'
import { AuditErrors } from './api.js'
import type { Chain } from './chain.js'
import { actorOf, type ChainedRow } from './entry.js'

/** Maximum length of a chain. No subsystem makes longer ones, and a cycle must end. */
const MAX_STEPS = 64
/** Number of newest events that are searched. */
const SEARCHED = 20_000

/**
 * Follows causes from an outcome back to its origin. `id` is that of an event or request, `kind/id` of a record with an optional
 * `@version`, or the id of a thing in events: a run, a session, a job.
 * @throws Fault `why_not_found`
 */
export async function whyOf(id: string, chain: Chain, events: EventsApi): Promise<WhyReply> {
  const found = begin(id, chain, events) ?? (await ofPayload(id, events))
  if (!found) throw AuditErrors.why_not_found(`nothing is recorded under ${shown(id)}`)
  const newest = await follow(found, chain, events)
  if (newest.end === REQUEST) return { id, ...newest }
  // The newest event may have no cause, while the newest request or the first event has one.
  let { chain: steps, complete, end } = newest
  for (const other of [ofEntry(id, chain), await ofFirst(id, events)]) {
    if (!other || steps.some(({ id }) => id === other.step.id)) continue
    const more = await follow(other, chain, events)
    steps = [...steps, ...more.chain.filter(({ id }) => !steps.some(step => step.id === id))]
    complete = more.complete
    end = more.end
  }
  return { id, chain: steps, complete, end }
}

const REQUEST = 'a request'

/** The first step of a chain, and the id of its cause. */
interface Begun {
  readonly step: WhyStep
  readonly cause?: string | undefined
}

async function follow(found: Begun, chain: Chain, events: EventsApi): Promise<Omit<WhyReply, 'id'>> {
  let { step, cause } = found
  const steps = [step]
  while (cause !== undefined && steps.length < MAX_STEPS) {
    await turn()
    if (steps.some(({ id }) => id === cause)) return { chain: steps, complete: false, end: `${cause} caused itself` }
    if (cause.startsWith('req_')) {
      steps.push(requestStep(cause, chain, step))
      return { chain: steps, complete: true, end: REQUEST }
    }
    const event = events.find(cause)
    const entry = chain.newest({ event: cause })
    const next = event ? begunBy(event, entry) : entry && recorded(entry)
    if (!next) return { chain: steps, complete: false, end: `${cause} is no longer stored` }
    step = next.step
    cause = next.cause ?? entry?.cause
    steps.push(step)
  }
  const isCut = cause !== undefined
  const end = isCut ? `after ${MAX_STEPS} steps` : `${step.actor ?? 'the daemon'}, on its own`
  return { chain: steps, complete: !isCut, end }
}

const isPlain = (id: string) => !/^(?:req|evt)_/.test(id) && !id.includes('/')

/** The newest request about a thing. */
function ofEntry(id: string, chain: Chain): Begun | undefined {
  const entry = isPlain(id) ? chain.newestOfId(id) : undefined
  return entry && recorded(entry)
}

/** The oldest event about a thing, of those in the database. */
async function ofFirst(id: string, events: EventsApi): Promise<Begun | undefined> {
  if (!isPlain(id)) return undefined
  const after = Math.max(0, events.last() - SEARCHED)
  const [event] = await events.list({ subject: id, after, limit: 1 })
  return event && begunBy(event)
}

/** The oldest of the newest events about a task that mention one of its runs. */
async function ofPayload(id: string, events: EventsApi): Promise<Begun | undefined> {
  if (!id.startsWith('trun_')) return undefined
  const last = events.last()
  for (let after = Math.max(0, last - SEARCHED); after < last; ) {
    const page = await events.list({ after, limit: 1000 })
    const event = page.find(({ payload }) => Object(payload).run_id === id)
    if (event) return begunBy(event)
    after = page.at(-1)?.seq ?? last
  }
  return undefined
}

const begunBy = (event: StoredEvent, entry?: ChainedRow): Begun => ({
  step: eventStep(event, entry),
  cause: event.cause,
})
const recorded = (entry: ChainedRow): Begun => ({ step: entryStep(entry), cause: entry.cause })

function begin(id: string, chain: Chain, events: EventsApi): Begun | undefined {
  if (id.startsWith('req_')) {
    const entry = chain.newest({ cause: id })
    return entry && { step: requestStep(id, chain, entryStep(entry)) }
  }
  const [, subject = id, version] = /^(.+\/.+?)(?:@(\d{1,15}))?$/.exec(id) ?? []
  const event = id.startsWith('evt_') ? events.find(id) : version ? undefined : events.latest({ subject })
  if (event) return begunBy(event, chain.newest({ event: event.id }))
  const where = id.startsWith('evt_') ? { event: id } : { subject, ...(version && { version: Number(version) }) }
  const entry = chain.newest(where) ?? (subject.includes('/') ? undefined : chain.newestOfId(subject))
  return entry && recorded(entry)
}

const nameOf = ({ kind, ref }: NamedActor): string => `${kind}/${ref}`

function eventStep(event: StoredEvent, entry: ChainedRow | undefined): WhyStep {
  const { id, name, actor, at, subject } = event
  return {
    id,
    what: `${name}${detailOf(event.payload)}`,
    ...(subject === undefined ? {} : { subject }),
    actor: nameOf(namedActor(actor)),
    ...(actor.on_behalf_of === undefined ? {} : { on_behalf_of: actor.on_behalf_of }),
    ...(entry?.origin ? { origin: entry.origin } : {}),
    at: iso(at),
  }
}

function entryStep(row: ChainedRow): WhyStep {
  const { event, seq, action, subject, version, on_behalf_of, origin, at } = row
  return {
    id: event ?? `audit ${seq}`,
    what: action,
    subject: version === undefined ? subject : `${subject}@${version}`,
    actor: nameOf(actorOf(row)),
    ...(on_behalf_of === undefined ? {} : { on_behalf_of }),
    ...(origin === undefined ? {} : { origin }),
    at: iso(at),
  }
}

/** A request step takes actor and time from an entry that the request caused. */
function requestStep(id: string, chain: Chain, { subject: _, ...of }: WhyStep): WhyStep {
  const { request = REQUEST, origin = of.origin, at } = chain.newest({ cause: id }) ?? {}
  return { ...of, id, what: request, ...(origin !== undefined && { origin }), ...(at !== undefined && { at: iso(at) }) }
}

/** The parts of a payload that say how something ended. */
function detailOf(payload: unknown): string {
  const { version, status, stop_reason, error } = Object(payload) as Record<string, unknown>
  const parts = [
    ...(typeof version === 'number' ? [`version ${version}`] : []),
    ...[status, stop_reason, error].filter(part => typeof part === 'string'),
  ]
  return parts.length === 0 ? '' : `: ${clip(parts.join(', '), 200)}`
}
