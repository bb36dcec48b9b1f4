import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { type Fault, KernelErrors } from '../contract/errors.js'
import type { Actor } from '../contract/record.js'

/** Longer ones are none of ours and are not looked at. */
const MAX_CURSOR = 4096

/** What a list pages by. */
export interface PagingOptions<P> {
  /** Schema of the place of a row in the order of the list, plain JSON: what the next page begins behind. */
  readonly place: v.GenericSchema<unknown, P>
  /** Makes the fault of a cursor that does not belong to the list; default `invalid_cursor` (400). */
  readonly invalid?: () => Fault
}

/** Whose list, and which; a cursor is good for one that is equal, whatever the order of its members. */
export interface PageOf {
  /** Absent: the cursor is good for every caller. */
  readonly actor?: Pick<Actor, 'kind' | 'id'>
  /** What filters and sorts; members `cursor`, `limit` and those that are undefined do not count. */
  readonly query: Readonly<Record<string, unknown>>
}

/** One page; `next_cursor` is there where there is more. */
export type Cut<R> = { readonly rows: R[]; readonly has_more: boolean; readonly next_cursor?: string }

/**
 * The pages of one list: opaque cursors, each bound to the caller and the query that it was given to. They hold no secret and
 * are not signed: who makes one up reads from another place what the query shows anyway.
 */
export class Paging<P> {
  constructor(private readonly options: PagingOptions<P>) {}

  /** Place that the page begins behind; undefined for the first page. @throws Fault `invalid_cursor`, or that of the options */
  after(of: PageOf, cursor: string | undefined): P | undefined {
    if (cursor === undefined) return undefined
    const [digest, place] = this.#parsed(cursor)
    const read = digest === digestOf(of) ? v.safeParse(this.options.place, place) : undefined
    if (!read?.success) throw (this.options.invalid ?? KernelErrors.invalid_cursor)()
    return read.output
  }

  cursor(of: PageOf, place: P): string {
    return Buffer.from(JSON.stringify([digestOf(of), place])).toString('base64url')
  }

  /** Cuts a page of `limit` off rows of which one more was read: that one says that there is more. */
  cut<R>(of: PageOf, rows: readonly R[], limit: number, placeOf: (row: R) => P): Cut<R> {
    const page = rows.slice(0, limit)
    const last = page.at(-1)
    if (last === undefined || rows.length <= limit) return { rows: page, has_more: false }
    return { rows: page, has_more: true, next_cursor: this.cursor(of, placeOf(last)) }
  }

  #parsed(cursor: string): unknown[] {
    try {
      const parsed: unknown = cursor.length > MAX_CURSOR ? [] : JSON.parse(Buffer.from(cursor, 'base64url').toString())
      return Array.isArray(parsed) ? parsed : []
    } catch {
      return []
    }
  }
}

function digestOf({ actor, query }: PageOf): string {
  const { cursor: _cursor, limit: _limit, ...filter } = query
  const members = Object.entries(filter).filter(([, value]) => value !== undefined)
  const text = JSON.stringify([actor && [actor.kind, actor.id], members.sort(([a], [b]) => (a < b ? -1 : 1))])
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}
