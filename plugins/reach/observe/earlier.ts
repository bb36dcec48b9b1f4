import type { AgentDay, LocalTime, SessionSpan, SessionsApi } from '../../work/sessions/api.js'

/** Workspaces (and all of them together) with remembered days. */
const MAX_PLACES = 16

interface Summary {
  /** The day of the read. */
  readonly today: string
  /** Usage by day, before today, starting at `from`. */
  readonly from: string
  readonly usage: readonly AgentDay[]
  /** The longest session of those last active before today, and the start of its search range. */
  longest: { readonly since: number; readonly span: SessionSpan | undefined } | undefined
}

/**
 * Usage data of sessions. Days before today no longer change, so they are read once per day and remembered; otherwise
 * each overview would sum up all sessions of 90 days.
 */
export class EarlierDays {
  readonly #places = new Map<string, Summary>()

  constructor(private readonly time: LocalTime) {}

  /** The usage of sessions since a day; earlier days come from the cache. */
  usage(past: SessionsApi['past'], from: string, now: number, workspaceId: string | undefined): AgentDay[] {
    const today = this.time.day(now)
    const { usage } = this.#summary(past, from, now, workspaceId)
    return [...usage.filter(({ day }) => day >= from), ...past.usage(today, today, workspaceId)]
  }

  /** The longest session since a time; earlier days come from the cache. */
  longest(
    sessions: Pick<SessionsApi, 'past' | 'get'>,
    since: number,
    now: number,
    workspaceId: string | undefined,
  ): SessionSpan | undefined {
    const { past } = sessions
    const today = this.time.day(now)
    const begin = this.time.dayStart(today)
    const summary = this.#summary(past, today, now, workspaceId)
    const known = summary.longest
    const isGone = known?.span !== undefined && sessions.get(known.span.id) === undefined
    if (known?.since !== since || isGone) summary.longest = { since, span: past.longest(since, begin, workspaceId) }
    const before = summary.longest?.span
    const current = past.longest(begin, Number.MAX_SAFE_INTEGER, workspaceId)
    // A remembered session that is active again has grown, and is among those of today.
    return lengthOf(before) > lengthOf(current) ? before : current
  }

  #summary(past: SessionsApi['past'], from: string, now: number, workspaceId: string | undefined): Summary {
    const [yesterday = '', today = ''] = this.time.daysTo(now, 2)
    const key = workspaceId ?? ''
    const known = this.#places.get(key)
    if (known && known.today === today && known.from <= from) return known
    if (this.#places.size >= MAX_PLACES) this.#places.clear()
    const summary = { today, from, usage: past.usage(from, yesterday, workspaceId), longest: undefined }
    this.#places.set(key, summary)
    return summary
  }
}

const lengthOf = (span: SessionSpan | undefined): number => (span ? span.to - span.from : -1)
