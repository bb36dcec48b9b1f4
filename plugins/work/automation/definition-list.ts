import * as v from 'valibot'
import { Paging } from '../../../kernel/kit/page.js'
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
/** Records examined per turn of the event loop: by columns only, or decoded. */
const WINDOW = { columns: 2000, decoded: 200 }

/** Query of a list; `event` applies to triggers only. */
export type DefinitionQuery = ListJobsQuery & Pick<ListTriggersQuery, 'event'>

/** Reads definitions of one kind; `F` are the members used by filters. Undefined for deleted or invalid ones. */
export interface DefinitionReader<F, W> {
  facts(record: StoredRecord): F | undefined
  wire(id: string): W | undefined
  /** Texts to search in addition to the common members. */
  searched(facts: F): readonly string[]
}

type Facts = ReturnType<typeof factsOf>

/**
 * One page of definitions, newest first, with the total number of matches. Records are read window by window, so that 100,000
 * of them do not block the event loop, and are decoded only when a filter needs it. The cursor is the place of the last
 * record of the previous page.
 */
export async function pageDefinitions<F extends Facts, W>(
  { kind, records, next }: { readonly kind: string; readonly records: Records; readonly next: string },
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
  /** One more than the page size, to detect a next page. */
  const found: RecordHead[] = []
  let total = 0
  // Records written meanwhile are not included.
  const newest = columns ? (records.page({ limit: 1 })[0]?.place ?? 0) : 0
  const size = matches ? WINDOW.decoded : WINDOW.columns
  for (let high = newest; high > 0; high -= size) {
    const within = (upTo: number) => ({ ...columns, places: { above: high - size, upTo } })
    const some = matches && idsOf(records.list(within(high)), reader, matches)
    const here = some ? some.size : records.count(within(high))
    total += here
    const missing = limit + 1 - found.length
    if (here > 0 && missing > 0) {
      const heads = records.page({ ...within(Math.min(high, before - 1)), limit: some ? 0 : missing })
      found.push(...heads.filter(({ id }) => !some || some.has(id)).slice(0, missing))
    }
    await turn()
  }
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

function searched<F extends Facts, W>(facts: F, reader: DefinitionReader<F, W>): readonly string[] {
  return [facts.name, facts.agent_name, facts.prompt, facts.scope, facts.source, ...reader.searched(facts)]
}
