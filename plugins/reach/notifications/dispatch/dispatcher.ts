import { backoff } from '../../../../kernel/kit/backoff.js'
import { covers } from '../../../../kernel/kit/text.js'
import { messageOf as errorText, type Tx, turn } from '../../../../kernel/plugin.js'
import { durationMs } from '../../../../schemas/duration.js'
import type { PresetTarget } from '../../../../schemas/notifications.js'
import type { StoredEvent } from '../../../platform/events/api.js'
import type { BridgesApi } from '../../bridges/api.js'
import type { K } from '../needs.js'
import { matches } from '../presets/filter.js'
import type { ActivePreset, Presets } from '../presets/presets.js'
import { isQuiet, quietEnd } from '../presets/rules.js'
import { addressOf, channelOf, destinationOf } from '../presets/targets.js'
import { type CursorRow, cursors, reminders } from '../tables.js'
import { type Happening, happeningOf, messageOf } from './happening.js'
import { paced } from './pace.js'

/** Events read and posted per transaction. */
const PAGE = 200
/** Maximum number of read events that a cursor may lag behind. */
const SAVED = 5000
/** Lines of a digest of quiet hours. */
const DIGEST_LINES = 20
/** Type of a message about several events. */
const DIGEST = 'notifications.digest'
/** Prefix of the source of preset messages. */
const PRESET = 'preset:'
/** Milliseconds that the dispatcher waits for bridges that do not run. */
const ABSENT_MS = 30_000
const RETRY = { firstMs: 1000, longestMs: 5 * 60_000 }
/** Maximum sleep in milliseconds: the wall clock may be changed, and a machine may be suspended. */
const LONGEST_SLEEP_MS = 60_000

/** A preset with one of its targets. */
interface Lane {
  readonly preset: ActivePreset
  readonly key: string
  readonly target: PresetTarget
}

/** A part of the log, complete up to a position. */
interface Page {
  readonly found: readonly StoredEvent[]
  readonly upTo: number
}

/** Progress of a lane after a page; `until`: it waits until then. */
interface Step {
  readonly done: boolean
  readonly until?: number
}

/**
 * Passes events to bridges. Each preset has a cursor per target, which moves in the transaction of the message, so that
 * each event becomes exactly one message even after a crash; a failing target does not block the others.
 */
export class Dispatcher {
  #wake: () => void = () => {}
  #isWoken = true
  /** Pages of the log read in this round, by start position. */
  readonly #pages = new Map<number, Promise<Page>>()
  readonly #happenings = new WeakMap<StoredEvent, Happening>()
  /** Position up to which the log was read for a lane without finding an event. */
  readonly #passed = new Map<string, { readonly seq: number; readonly upTo: number }>()

  /**
   * @param more `openItems`: ids of items that wait for a person; `besides`: sends further messages in each round, and
   *   resolves with the time of the next call
   */
  constructor(
    private readonly kernel: K,
    private readonly presets: Presets,
    private readonly more: {
      readonly openItems: () => readonly string[]
      readonly besides: () => Promise<number | undefined>
    },
  ) {}

  /** Whether an enabled preset matches this event. */
  names(event: string): boolean {
    return this.presets.active.some(({ row }) => row.events.some(pattern => covers(pattern, event)))
  }

  /** Wakes the dispatcher. */
  wake(): void {
    this.#isWoken = true
    this.#wake()
  }

  /** Wakes one turn later, because the log marks an event as durable after the callbacks of its transaction. */
  readonly wakeSoon = (): void => void turn().then(() => this.wake())

  /** Sends until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, needs } = this.kernel
    if ((await needs.daemon.released(signal)) && !signal.aborted) await this.#passOver()
    signal.addEventListener('abort', () => this.wake(), { once: true })
    while (!signal.aborted) {
      this.#isWoken = false
      const next = await this.#round(signal)
      if (this.#isWoken) continue
      const woken = new Promise<void>(resolve => {
        this.#wake = resolve
      })
      if (next === undefined) await woken
      else {
        const sleep = new AbortController()
        const wait = Math.min(LONGEST_SLEEP_MS, Math.max(1, next - clock.now()))
        await Promise.race([woken, clock.sleep(wait, sleep.signal).catch(() => {})])
        sleep.abort()
      }
    }
  }

  /** Skips notifications from before the confirmation of a restored home: the original home has sent them. */
  async #passOver(): Promise<void> {
    const { db, needs } = this.kernel
    await db.tx(t => {
      const seq = needs.events.last()
      for (const { preset, target } of cursors.all(t))
        cursors.update(t, { preset, target }, { seq, failures: 0, retry_at: undefined, last_error: undefined })
      for (const { id } of reminders.all(t)) reminders.delete(t, { id })
    })
  }

  /** Sends waiting messages, one page per lane in turn. Resolves with the time of the next round without a wake. */
  async #round(signal: AbortSignal): Promise<number | undefined> {
    let lanes = this.presets.active.flatMap(preset =>
      [...preset.targets].map(([key, target]): Lane => ({ preset, key, target })),
    )
    const waits: number[] = []
    while (lanes.length > 0 && !signal.aborted) {
      const going: Lane[] = []
      for (const lane of lanes) {
        if (signal.aborted) break
        const { done, until } = await this.#step(lane)
        if (until !== undefined) waits.push(until)
        else if (!done) going.push(lane)
        await turn()
      }
      lanes = going
      this.#pages.clear()
    }
    for (const next of [await this.#remind(), await this.more.besides()]) if (next !== undefined) waits.push(next)
    return waits.length === 0 ? undefined : Math.min(...waits)
  }

  async #step(lane: Lane): Promise<Step> {
    const { db, clock, needs } = this.kernel
    const { current: bridges } = needs.bridges
    const of = { preset: lane.preset.row.name, target: lane.key }
    const stored = cursors.get(db, of)
    if (!stored) return { done: true }
    const now = clock.now()
    if (!bridges && !channelOf(this.kernel, lane.target)) return { done: true, until: now + ABSENT_MS }
    if (stored.retry_at !== undefined && stored.retry_at > now) return { done: true, until: stored.retry_at }
    const { page, upTo } = await this.#next(lane, stored)
    if (page.length === 0 && upTo - stored.seq < SAVED) return { done: true }
    if (stored.failures > 0) return this.#oneByOne(lane, stored, page, upTo, bridges)
    try {
      return await this.#send(lane, stored, page, upTo, bridges)
    } catch {
      return this.#oneByOne(lane, stored, page, upTo, bridges)
    }
  }

  /** The next relevant events of a lane, and the position up to which the log was read; pages without any are skipped. */
  async #next(
    lane: Lane,
    { seq }: CursorRow,
  ): Promise<{ readonly page: readonly StoredEvent[]; readonly upTo: number }> {
    const { events } = this.kernel.needs
    const id = `${lane.preset.row.name}/${lane.key}`
    const passed = this.#passed.get(id)
    let from = passed?.seq === seq ? passed.upTo : seq
    for (let last = events.last(); from < last; last = events.last()) {
      const { found, upTo } = await this.#page(from)
      const named = found.filter(({ name }) => lane.preset.row.events.some(pattern => covers(pattern, name)))
      if (named.length > 0) return { page: named, upTo }
      from = upTo
      this.#passed.set(id, { seq, upTo })
    }
    return { page: [], upTo: from }
  }

  /** After a failure, sends each event in its own transaction, so that those before the failing one succeed. */
  async #oneByOne(
    lane: Lane,
    from: CursorRow,
    page: readonly StoredEvent[],
    upTo: number,
    bridges: BridgesApi | undefined,
  ): Promise<Step> {
    const { db, clock, ids } = this.kernel
    const of = { preset: from.preset, target: from.target }
    let cursor = from
    for (const event of page) {
      try {
        const step = await this.#send(lane, cursor, [event], event.seq, bridges)
        if (step.until !== undefined || step.done) return step
      } catch (error) {
        const failures = cursor.failures + 1
        const until = clock.now() + backoff(failures, () => ids.random(), RETRY)
        const last_error = this.kernel.redact.text(errorText(error), 500)
        await db.tx(t => cursors.update(t, of, { failures, retry_at: until, last_error }))
        return { done: true, until }
      }
      cursor = { ...cursor, seq: event.seq, failures: 0 }
    }
    return this.#send(lane, cursor, [], upTo, bridges)
  }

  /** Posts the preset's messages for some events, and moves the cursor, in one transaction. */
  async #send(
    { preset, key, target }: Lane,
    cursor: CursorRow,
    page: readonly StoredEvent[],
    upTo: number,
    bridges: BridgesApi | undefined,
  ): Promise<Step> {
    const { name, rules } = preset.row
    const wanted = page.map(event => this.#happening(event))
    const of = { preset: name, target: key }
    return this.kernel.db.tx((t): Step => {
      const current = cursors.get(t, of)
      // The preset was disabled meanwhile; a changed one has woken the dispatcher again.
      if (!current || current.seq !== cursor.seq) return { done: true }
      const now = this.kernel.clock.now()
      const quiet = rules?.quiet_hours
      const isNight = quiet !== undefined && isQuiet(quiet, now)
      const held: Happening[] = []
      let result: Posted = {}
      let seq = upTo
      let until: number | undefined
      for (const happening of wanted) {
        const passes = matches(preset.filter, happening.facts) && this.#concerns(target, happening)
        if (isNight && quiet && passes) {
          // The cursor stays before the first event that has to wait.
          seq = happening.seq - 1
          until = quietEnd(quiet, now)
          break
        }
        if (paced(t, of, rules, happening, { now, passes }) !== undefined) continue
        if (quiet && isQuiet(quiet, happening.at)) held.push(happening)
        else result = { ...result, ...this.#post(t, { preset, key, target }, happening, bridges) }
      }
      if (held.length > 0) result = { ...result, ...this.#digest(t, { preset, key, target }, held, bridges) }
      cursors.update(t, of, { seq, failures: 0, retry_at: undefined, last_error: undefined, ...result })
      return until === undefined ? { done: false } : { done: true, until }
    })
  }

  /**
   * Events of a bridge are not sent to that bridge, and failed preset messages are not reported to any: otherwise
   * failing bridges would cause endless messages.
   */
  #concerns(target: PresetTarget, { type, subject, source }: Happening): boolean {
    if (!type.startsWith('bridge.')) return true
    return subject !== target.bridge_id && source?.startsWith(PRESET) !== true
  }

  #post(t: Tx, lane: Lane, happening: Happening, bridges: BridgesApi | undefined): Posted {
    const { sessionId, item } = happening
    // Events of a session on a focused surface have been seen; recent activity of the person alone does not imply that.
    if (sessionId !== undefined && this.kernel.needs.sessions.current?.isWatched(sessionId)) return {}
    const text = messageOf(happening)
    const posted = this.#deliver(t, lane, keyOf(lane, happening.id), text, bridges, happening)
    const remindAfter = durationMs(lane.preset.row.rules?.remind_after ?? '0') ?? 0
    if (posted.last_delivery_id !== undefined && item !== undefined && remindAfter > 0) {
      const due_at = this.kernel.clock.now() + remindAfter
      const of = { preset: lane.preset.row.name, target: lane.key }
      reminders.replace(t, { id: `${posted.last_delivery_id}:reminder`, ...of, item, text, due_at })
    }
    return posted
  }

  /** Sends one message for all events of the quiet hours. */
  #digest(t: Tx, lane: Lane, held: readonly Happening[], bridges: BridgesApi | undefined): Posted {
    const [first] = held
    if (first && held.length === 1) return this.#post(t, lane, first, bridges)
    const lines = held.slice(0, DIGEST_LINES).map(({ title }) => `- ${title}`)
    const more = held.length - lines.length
    const text = [`${held.length} events in quiet hours`, ...lines, ...(more > 0 ? [`and ${more} more`] : [])].join(
      '\n',
    )
    return this.#deliver(t, lane, keyOf(lane, `${first?.id}:quiet`), text, bridges)
  }

  /** The key is stable for an event, so that a bridge sends only one message for it. */
  #deliver(
    t: Tx,
    { preset, target }: Lane,
    id: string,
    text: string,
    bridges: BridgesApi | undefined,
    of?: Pick<Happening, 'sessionId' | 'taskId' | 'type'>,
  ): Posted {
    const { name } = preset.row
    const channel = channelOf(this.kernel, target)
    if (channel) {
      const problem = channel.post(t, { key: id, text, ...subjectOf(of) })
      if (problem !== undefined) return { last_error: problem }
      return { last_delivery_id: id, last_queued_at: this.kernel.clock.now() }
    }
    if (!bridges) return { last_error: 'no plugin serves bridges' }
    const bridge = bridges.get(target.bridge_id)
    if (!bridge) return { last_error: `the bridge ${target.bridge_id} no longer exists` }
    const { sessionId, taskId } = of ?? {}
    const creator = taskId === undefined ? undefined : this.kernel.needs.tasks.current?.creatorSession(taskId)
    const destination = destinationOf(target, [sessionId, creator], bridges) ?? {
      target: addressOf(target, bridge, bridges),
    }
    const outcome = bridges.post(t, { bridgeId: bridge.id, key: id, text, source: `${PRESET}${name}`, ...destination })
    if (outcome === 'missing') return { last_error: `the bridge ${bridge.id} no longer exists` }
    if (outcome === 'suppressed') return {}
    return { last_delivery_id: id, last_queued_at: this.kernel.clock.now() }
  }

  /** Sends due reminders of unanswered questions. Resolves with the time of the next one. */
  async #remind(): Promise<number | undefined> {
    const { db, clock, needs } = this.kernel
    const { current: bridges } = needs.bridges
    if (!bridges) return undefined
    const next = () => db.row('SELECT min(due_at) FROM notifications_reminder')?.[0]
    const first = next()
    if (first === null || first === undefined) return undefined
    const now = clock.now()
    if (Number(first) > now) return Number(first)
    const due = reminders.all(db, {}, 'ORDER BY due_at LIMIT 200').filter(({ due_at: at }) => at <= now)
    const open = new Set(this.more.openItems())
    await db.tx(t => {
      for (const { id, preset: name, target: key, item, text } of due) {
        reminders.delete(t, { id })
        const preset = this.presets.active.find(({ row }) => row.name === name)
        const target = preset?.targets.get(key)
        if (!preset || !target || !open.has(item)) continue
        this.#deliver(t, { preset, key, target }, id, `Still waiting: ${text}`, bridges)
      }
    })
    const later = next()
    return later === null || later === undefined ? undefined : Number(later)
  }

  #page(after: number): Promise<Page> {
    const known = this.#pages.get(after)
    if (known) return known
    const page = this.#read(after)
    this.#pages.set(after, page)
    return page
  }

  async #read(after: number): Promise<Page> {
    const { events } = this.kernel.needs
    // Read first: events that become durable during the read may be missing in the result.
    const last = events.last()
    const found = await events.list({ after, limit: PAGE })
    const newest = found.at(-1)?.seq ?? after
    return { found, upTo: found.length < PAGE ? Math.max(last, newest) : newest }
  }

  #happening(event: StoredEvent): Happening {
    const known = this.#happenings.get(event)
    if (known) return known
    const made = happeningOf(this.kernel, event)
    this.#happenings.set(event, made)
    return made
  }
}

const subjectOf = (of: Pick<Happening, 'sessionId' | 'taskId' | 'type'> | undefined) =>
  of ? { type: of.type, sessionId: of.sessionId, taskId: of.taskId } : { type: DIGEST }

/** Columns of a cursor about its last message. */
type Posted = Partial<Pick<CursorRow, 'last_delivery_id' | 'last_queued_at' | 'last_error'>>

const keyOf = ({ preset, key }: Lane, what: string) => `${PRESET}${preset.row.name}:target:${key}:${what}`
