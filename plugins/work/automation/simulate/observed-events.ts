import { turn } from '../../../../kernel/plugin.js'
import type { EventsApi, StoredEvent } from '../../../platform/events/api.js'
import { sourceOf } from '../triggers/observed.js'
import type { Span } from './simulate-jobs.js'

/** Page size per event name. */
const PAGE = 500

/**
 * Recorded events of a time span that can fire triggers on these events, oldest first, as far as they are still retained.
 * @param wanted trigger events such as `session.created`
 */
export async function* observedEvents(
  events: EventsApi,
  wanted: ReadonlySet<string>,
  { from, to }: Span,
): AsyncGenerator<StoredEvent> {
  const names = new Set([...wanted].flatMap(event => sourceOf(event) ?? []))
  const upTo = events.last()
  const streams = [...names].map(name => ofName(events, name, upTo))
  const heads = await Promise.all(streams.map(stream => stream.next()))
  for (;;) {
    let first = -1
    for (const [n, head] of heads.entries()) {
      const best = heads[first]
      if (!head.done && (!best || best.done || head.value.seq < best.value.seq)) first = n
    }
    const head = heads[first]
    if (!head || head.done) return
    const stream = streams[first] as (typeof streams)[number]
    if (head.value.at >= from && head.value.at <= to) yield head.value
    heads[first] = await stream.next()
  }
}

async function* ofName(events: EventsApi, name: string, upTo: number): AsyncGenerator<StoredEvent, undefined> {
  for (let after = 0; ; ) {
    const page = await events.list({ name, after, limit: PAGE })
    for (const event of page) {
      if (event.seq > upTo) return undefined
      yield event
    }
    const last = page.at(-1)
    if (page.length < PAGE || !last) return undefined
    after = last.seq
    await turn()
  }
}
