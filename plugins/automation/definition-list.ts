import * as v from 'valibot'
import { Paging } from '../../kernel/kit/page.js'
import {
  type Actor,
  KernelErrors,
  type RecordFilter,
  type RecordHead,
  type Records,
  type StoredRecord,
  turn,
} from '../../kernel/plugin.js'
import type { ListJobsQuery, ListTriggersQuery } from '../../schemas/automation.js'
import type { Page } from '../../schemas/kernel/common.js'
import type { factsOf } from './definitions.js'
import { sourceFilters } from './job-kind.js'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200
/** Records that are looked at in one turn of the event loop: by their columns, or decoded. */
const WINDOW = { columns: 2000, decoded: 200 }

/** What a list is asked for; `event` of triggers alone. */
export type DefinitionQuery = ListJobsQuery & Pick<ListTriggersQuery, 'event'>

/** Reads definitions of one kind, `F` as far as a list filters them; undefined for one that is gone or damaged. */
export interface DefinitionReader<F, W> {
  facts(record: StoredRecord): F | undefined
  wire(id: string): W | undefined
  /** What a search looks into, besides what all definitions have. */
  searched(facts: F): readonly string[]
}

type Facts = ReturnType<typeof factsOf>

/**
 * One page of definitions, the newest first, and how many the filter leaves in all. Records are gone through in the order in which
 * they were made, window by window, so that a hundred thousand do not hold the event loop; only what no column tells is asked
 * of the decoded definition. The cursor is the place of the last one of the page before.
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
  const of = { actor, query }
  const before = paging.after(of, query.cursor) ?? Number.POSITIVE_INFINITY
  const columns = columnFilter(kind, query)
  const matches = specFilter(query, reader)
  /** One more than the page has, where there is one. */
  const found: RecordHead[] = []
  let total = 0
  // A record that is written meanwhile has no part in this list.
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

/** What the store filters by, specs as they are stored; undefined where nothing can match. */
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

/** What only the decoded definition tells; undefined when nothing of that is asked for. */
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
