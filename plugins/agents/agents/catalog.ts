import * as v from 'valibot'
import { type Cut, Paging } from '../../../kernel/kit/page.js'
import type { Actor } from '../../../kernel/plugin.js'
import type { AgentCatalogQuery, AgentFacets } from '../../../schemas/agents.js'
import { AgentErrors } from './api.js'
import { categoriesOf, type Listed, type Listing } from './definition/view.js'

const DEFAULT_PAGE = 50
const paging = new Paging({ place: v.string(), invalid: AgentErrors.agent_cursor_invalid })

/** One page of the catalog by name, with the totals after filtering. */
export interface CatalogPage {
  readonly rows: readonly Listed[]
  readonly names: readonly string[]
  readonly facets: AgentFacets
  readonly page: Omit<Cut<Listed>, 'rows'> & { readonly limit: number; readonly total: number }
}

/** The viewer and workspace of a catalog page. */
export interface CatalogFor {
  readonly workspaceId: string
  readonly actor: Actor
  /** Names of working agents; undefined if unknown. */
  readonly active: ReadonlySet<string> | undefined
}

/**
 * Filters a listing. Facets count the remaining agents before the page is cut. @throws Fault `agent_cursor_invalid`,
 * `agent_activity_unavailable`.
 */
export function catalogPage(
  { agents, categories }: Listing,
  query: AgentCatalogQuery,
  { workspaceId, actor, active }: CatalogFor,
): CatalogPage {
  const { name, category, status, limit = DEFAULT_PAGE } = query
  if (status !== undefined && active === undefined) throw AgentErrors.agent_activity_unavailable()
  const text = query.q?.trim().toLowerCase() ?? ''
  const of = { actor, query: { workspaceId, name, q: query.q, category, status } }
  const after = paging.after(of, query.cursor)
  const isActive = (row: Listed) => active?.has(row.definition.name) ?? false
  const filtered = name !== undefined || category !== undefined || text !== '' || status !== undefined
  const matches = (row: Listed) =>
    (name === undefined || row.definition.name === name) &&
    (category === undefined || row.category === category) &&
    (text === '' || row.text.includes(text)) &&
    (status === undefined || isActive(row) === (status === 'active'))
  const left = filtered ? agents.filter(matches) : agents
  const from = after === undefined ? 0 : firstAfter(left, after)
  const { rows, ...more } = paging.cut(of, left.slice(from, from + limit + 1), limit, row => row.definition.name)
  const busy = active === undefined || active.size === 0 ? 0 : left.filter(isActive).length
  return {
    rows,
    names: rows.map(({ definition }) => definition.name),
    facets: {
      total: left.length,
      active: busy,
      idle: left.length - busy,
      categories: filtered ? categoriesOf(left) : [...categories],
    },
    page: { limit, total: left.length, ...more },
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
