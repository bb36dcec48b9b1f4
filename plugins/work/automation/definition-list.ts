import * as v from 'valibot'
import { Paging } from '../../../kernel/kit/page.js'
import { clip } from '../../../kernel/kit/text.js'
import {
  type Actor,
  KernelErrors,
  type RecordFilter,
  type RecordHead,
  type Records,
  type StoredRecord,
  turn,
} from '../../../kernel/plugin.js'
import type { ListJobsQuery, ListTriggersQuery } from '../../../schemas/automation.js'
import type { Page } from '../../../schemas/kernel/common.js'
import type { factsOf } from './definitions.js'
import { sourceFilters } from './job-kind.js'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200
/** Records examined per turn of the event loop: by the store only, or decoded. */
const WINDOW = { columns: 2000, decoded: 200 }
const NONE: ReadonlySet<string> = new Set()

/** Query of a list; `event` applies to triggers only. */
export type DefinitionQuery = ListJobsQuery & Pick<ListTriggersQuery, 'event'>

/** The number of all definitions of a kind, which is counted again only after a change. */
export class KnownTotal {
  #changes = 0
  #known: { readonly changes: number; readonly total: number } | undefined

  /** A definition has changed, or is about to. */
  changed(): void {
    this.#changes++
  }

  get changes(): number {
    return this.#changes
  }

  get(): number | undefined {
    return this.#known?.changes === this.#changes ? this.#known.total : undefined
  }

  /** @param changes their number before the count began */
  set(total: number, changes: number): void {
    this.#known = { total, changes }
  }
}

/** Reads definitions of one kind; `F` are the members used by filters. Undefined for deleted or invalid ones. */
export interface DefinitionReader<F, W> {
  facts(record: StoredRecord): F | undefined
  wire(id: string): W | undefined
  /** Texts to search in addition to the common members. */
  searched(facts: F): readonly string[]
}

type Facts = ReturnType<typeof factsOf>

/** The definitions of a kind. */
export interface DefinitionStore {
  readonly kind: string
  readonly records: Records
  /** Command after an invalid cursor. */
  readonly next: string
  readonly all: KnownTotal
}

/**
 * One page of definitions, newest first, with the total number of matches. Records are read window by window, so that 100,000
 * of them do not block the event loop, and are decoded only when a filter needs it and the store finds the searched text in
 * them. The cursor is the place of the last record of the previous page.
 */
export async function pageDefinitions<F extends Facts, W>(
  { kind, records, next, all }: DefinitionStore,
  actor: Actor,
  query: DefinitionQuery,
  reader: DefinitionReader<F, W>,
): Promise<{ readonly definitions: W[]; readonly page: Page }> {
  const paging = new Paging({
    place: v.pipe(v.number(), v.safeInteger()),
    invalid: () => KernelErrors.invalid_cursor(undefined, { next }),
  })
  const limit = Math.min(query.limit || DEFAULT_LIMIT, MAX_LIMIT)
  const of = { actor, query: { ...query, kind } }
  const before = paging.after(of, query.cursor) ?? Number.POSITIVE_INFINITY
  const columns = columnFilter(kind, query)
  const matches = specFilter(query, reader)
  const pattern = matches && patternFilter(query)
  /** One more than the page size, to detect a next page. */
  const found: RecordHead[] = []
  // Records written meanwhile are not included.
  const newest = columns ? (records.page({ limit: 1 })[0]?.place ?? 0) : 0
  const isWhole = columns !== undefined && !matches && Object.keys(columns).length === 1
  const known = isWhole ? all.get() : undefined
  const { changes } = all
  let total = known ?? 0
  const missing = () => limit + 1 - found.length
  const pageOnly = async () => {
    for (let high = Math.min(newest, before - 1); high > 0 && missing() > 0; high -= WINDOW.columns) {
      const places = { above: high - WINDOW.columns, upTo: high }
      found.push(...records.page({ ...columns, places, limit: missing() }))
      await turn()
    }
  }
  const wholeList = async () => {
    for (let high = newest, low = 0; high > 0; high = low) {
      low = high - (matches && !pattern ? WINDOW.decoded : WINDOW.columns)
      const within = (upTo: number) => ({ ...columns, ...pattern, places: { above: low, upTo } })
      const searched = pattern && records.page({ ...within(high), limit: WINDOW.decoded })
      // The rest of the window is decoded in the next turn.
      if (searched?.length === WINDOW.decoded) low = (searched.at(-1)?.place ?? 1) - 1
      const some = matches && (searched?.length === 0 ? NONE : idsOf(records.list(within(high)), reader, matches))
      const here = some ? some.size : records.count(within(high))
      total += here
      if (here > 0 && missing() > 0) {
        const heads = records.page({ ...within(Math.min(high, before - 1)), limit: some ? 0 : missing() })
        found.push(...heads.filter(({ id }) => !some || some.has(id)).slice(0, missing()))
      }
      await turn()
    }
  }
  await (known === undefined ? wholeList() : pageOnly())
  if (isWhole) all.set(total, changes)
  const { rows, ...more } = paging.cut(of, found, limit, ({ place }) => place)
  return { definitions: rows.flatMap(({ id }) => reader.wire(id) ?? []), page: { limit, total, ...more } }
}

/** The part of the filter that the store evaluates; undefined when nothing can match. */
function columnFilter(
  kind: string,
  { scope, workspace_id: workspace, source, event }: DefinitionQuery,
): RecordFilter | undefined {
  if (workspace && scope === 'global') return undefined
  const where = workspace ? { kind: 'workspace', id: workspace } : scope && { kind: scope }
  const members = event ? { members: { event } } : {}
  return { kind, ...members, ...(source && sourceFilters[source]), ...(where && { scope: where }) }
}

function idsOf<F, W>(records: readonly StoredRecord[], reader: DefinitionReader<F, W>, matches: (facts: F) => boolean) {
  const matching = records.filter(record => {
    const facts = reader.facts(record)
    return facts && matches(facts)
  })
  return new Set(matching.map(({ id }) => id))
}

/** The part of the filter that needs decoded definitions; undefined when there is none. */
function specFilter<F extends Facts, W>(
  { enabled, loop, q }: DefinitionQuery,
  reader: DefinitionReader<F, W>,
): ((facts: F) => boolean) | undefined {
  const wanted = q?.trim().toLowerCase()
  if (enabled === undefined && !loop && !wanted) return undefined
  return facts =>
    (enabled === undefined || facts.enabled === enabled) &&
    (!loop || facts.loop_target?.loop_name === loop) &&
    (!wanted || searched(facts, reader).some(text => text.toLowerCase().includes(wanted)))
}

/** Texts that a search also finds and that no spec contains. */
const WORDS = ['global', 'workspace', 'dynamic', 'config', 'package']

/** Longest text that the store looks for. */
const LONGEST_TEXT = 200
/** The common letters before a rare one that has three more characters behind it. */
const COMMON = /^[ etaoinsrhldcu_]+(?=[^ etaoinsrhldcu_].{3})/

/**
 * A pattern that the spec of each match is like, with the longest part of the searched text that JSON stores as it is. K and I
 * match any character, because the Kelvin sign and the dotted I are the same to `toLowerCase` and not to SQLite. It begins with a
 * rare letter if there is one: SQLite compares the rest at each place of the first. Undefined when the spec of a match may have none
 * of the text.
 */
function patternFilter({ q = '' }: DefinitionQuery): Pick<RecordFilter, 'like'> | undefined {
  const wanted = q.trim().toLowerCase()
  const [text = ''] = wanted.split(/[^\x20-\x7e]|["\\]/).toSorted((a, b) => b.length - a.length)
  const pattern = clip(text, LONGEST_TEXT).replace(/[ki%]/g, '_').replace(COMMON, '')
  return /[^_]/.test(pattern) && !WORDS.some(word => word.includes(wanted)) ? { like: `%${pattern}%` } : undefined
}

function searched<F extends Facts, W>(facts: F, reader: DefinitionReader<F, W>): readonly string[] {
  return [facts.name, facts.agent_name, facts.prompt, facts.scope, facts.source, ...reader.searched(facts)]
}
