import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { type Fault, KernelErrors } from '../contract/errors.js'
import type { Actor } from '../contract/record.js'
import { jsonOrText } from './canonical.js'

/** Longest cursor that is parsed; valid ones are shorter. */
const MAX_CURSOR = 4096

/** The paging of a list. */
export interface PagingOptions<P> {
  /** Schema of a row's place in the order of the list, as plain JSON; the next page begins after it. */
  readonly place: v.GenericSchema<unknown, P>
  /** Makes the fault of a cursor that does not belong to the list; default `invalid_cursor` (400). */
  readonly invalid?: () => Fault
}

/** The caller and the query of a list. A cursor is valid for an equal query, regardless of the order of its members. */
export interface PageOf {
  /** Absent: the cursor is valid for every caller. */
  readonly actor?: Pick<Actor, 'kind' | 'id'>
  /** Filters and sort order; `cursor`, `limit` and undefined members are ignored. */
  readonly query: Readonly<Record<string, unknown>>
}

/** One page; `next_cursor` is present if there is another. */
export type Cut<R> = { readonly rows: R[]; readonly has_more: boolean; readonly next_cursor?: string }

/**
 * The pages of one list: opaque cursors, each bound to the caller and the query that received it. They hold no secret and are not
 * signed: a forged cursor only selects another page of the same query.
 */
export class Paging<P> {
  constructor(private readonly options: PagingOptions<P>) {}

  /** The place after which the page begins; undefined for the first page. @throws Fault `invalid_cursor`, or that of the options */
  after(of: PageOf, cursor: string | undefined): P | undefined {
    if (cursor === undefined) return undefined
    const parsed = cursor.length > MAX_CURSOR ? undefined : jsonOrText(Buffer.from(cursor, 'base64url').toString())
    const [digest, position] = Array.isArray(parsed) ? parsed : []
    const read = digest === digestOf(of) ? v.safeParse(this.options.place, position) : undefined
    if (!read?.success) throw (this.options.invalid ?? KernelErrors.invalid_cursor)()
    return read.output
  }

  cursor(of: PageOf, position: P): string {
    return Buffer.from(JSON.stringify([digestOf(of), position])).toString('base64url')
  }

  /** Cuts a page of `limit` rows; the caller reads one row more, which shows whether there is another page. */
  cut<R>(of: PageOf, rows: readonly R[], limit: number, placeOf: (row: R) => P): Cut<R> {
    const page = rows.slice(0, limit)
    const last = page.at(-1)
    if (last === undefined || rows.length <= limit) return { rows: page, has_more: false }
    return { rows: page, has_more: true, next_cursor: this.cursor(of, placeOf(last)) }
  }
}

function digestOf({ actor, query }: PageOf): string {
  const { cursor: _cursor, limit: _limit, ...filter } = query
  const members = Object.entries(filter).filter(([, value]) => value !== undefined)
  const text = JSON.stringify([actor && [actor.kind, actor.id], members.sort(([a], [b]) => (a < b ? -1 : 1))])
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}
