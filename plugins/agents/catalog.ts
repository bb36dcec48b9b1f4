import { createHash } from 'node:crypto'
import type { AgentCatalogQuery, AgentFacets } from '../../schemas/agents.js'
import { AgentErrors } from './api.js'
import { categoriesOf, type Listed, type Listing } from './definition/view.js'

const DEFAULT_PAGE = 50

/** One page of the catalog by name, with what the filters leave in all. */
export interface CatalogPage {
  readonly rows: readonly Listed[]
  readonly facets: AgentFacets
  readonly page: {
    readonly has_more: boolean
    readonly limit: number
    readonly next_cursor?: string
    readonly total: number
  }
}

/**
 * Filters a listing. Facets count what the filters leave, before the page is cut.
 * @param active names at work; undefined when that is not known. Throws `agent_cursor_invalid`, `agent_activity_unavailable`.
 */
export function catalogPage(
  { agents, categories }: Listing,
  query: AgentCatalogQuery,
  workspaceId: string,
  active: ReadonlySet<string> | undefined,
): CatalogPage {
  const { name, category, status, limit = DEFAULT_PAGE } = query
  if (status !== undefined && active === undefined) throw AgentErrors.agent_activity_unavailable()
  const text = query.q?.trim().toLowerCase() ?? ''
  const filter = filterKey(workspaceId, query)
  const after = query.cursor === undefined ? '' : decodeCursor(query.cursor, filter)
  const isActive = (row: Listed) => active?.has(row.definition.name) ?? false
  const filtered = name !== undefined || category !== undefined || text !== '' || status !== undefined
  const matches = (row: Listed) =>
    (name === undefined || row.definition.name === name) &&
    (category === undefined || row.category === category) &&
    (text === '' || row.text.includes(text)) &&
    (status === undefined || isActive(row) === (status === 'active'))
  const left = filtered ? agents.filter(matches) : agents
  const from = after === '' ? 0 : firstAfter(left, after)
  const rows = left.slice(from, from + limit)
  const last = rows.at(-1)
  const more = from + limit < left.length
  const busy = active === undefined || active.size === 0 ? 0 : left.filter(isActive).length
  return {
    rows,
    facets: {
      total: left.length,
      active: busy,
      idle: left.length - busy,
      categories: filtered ? categoriesOf(left) : [...categories],
    },
    page: {
      has_more: more,
      limit,
      total: left.length,
      ...(more && last ? { next_cursor: encodeCursor(filter, last.definition.name) } : {}),
    },
  }
}

/** Rows are sorted by name. */
function firstAfter(rows: readonly Listed[], name: string): number {
  let [low, high] = [0, rows.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((rows[middle] as Listed).definition.name <= name) low = middle + 1
    else high = middle
  }
  return low
}

/** A page may have another size than the one before it. */
function filterKey(workspaceId: string, { name, q, category, status }: AgentCatalogQuery): string {
  const filter = JSON.stringify([workspaceId, name ?? null, q ?? null, category ?? null, status ?? null])
  return createHash('sha256').update(filter).digest('base64url').slice(0, 16)
}

const encodeCursor = (filter: string, name: string) => Buffer.from(JSON.stringify([filter, name])).toString('base64url')

function decodeCursor(cursor: string, filter: string): string {
  try {
    const [given, name]: unknown[] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (given === filter && typeof name === 'string' && name !== '') return name
  } catch {
    // Whatever it is, it is no cursor of ours.
  }
  throw AgentErrors.agent_cursor_invalid()
}
