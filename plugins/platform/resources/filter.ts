import { shown } from '../../../kernel/kit/text.js'
import { KernelErrors, type RecordFilter } from '../../../kernel/plugin.js'
import type { ListRecordsQuery } from '../../../schemas/resources.js'

/**
 * The filter of a query. Throws `invalid_filter` for half a pair, an incomplete scope, a negative limit, and a kind that differs
 * from that of the path.
 */
export function filterOf(query: ListRecordsQuery, pathKind?: string): RecordFilter & { readonly kind?: string } {
  const { scope_kind, limit } = query
  const kind = text(query.kind)
  const scope_id = text(query.scope_id)
  if (pathKind !== undefined && kind !== undefined && kind !== pathKind) {
    throw KernelErrors.invalid_filter(`the query asks for kind ${shown(kind)}, the path for ${pathKind}`)
  }
  if (limit !== undefined && limit < 0) throw KernelErrors.invalid_filter('limit must be positive, or 0 for all')
  if (scope_id !== undefined && scope_kind !== 'workspace') {
    throw KernelErrors.invalid_filter('scope_id is allowed only with scope_kind=workspace')
  }
  if (scope_kind === 'workspace' && scope_id === undefined) {
    throw KernelErrors.invalid_filter('scope_kind=workspace needs the workspace id in scope_id')
  }
  const owner = pair('owner', text(query.owner_kind), text(query.owner_id))
  const source = pair('source', text(query.source_kind), text(query.source_id))
  const wanted = pathKind ?? kind
  return {
    ...(wanted === undefined ? {} : { kind: wanted }),
    ...(scope_kind === undefined
      ? {}
      : { scope: { kind: scope_kind, ...(scope_id === undefined ? {} : { id: scope_id }) } }),
    ...(owner ? { owner } : {}),
    ...(source ? { source } : {}),
    ...(limit ? { limit } : {}),
  }
}

/** The trimmed value of a parameter; an empty one counts as missing. */
const text = (value: string | undefined) => value?.trim() || undefined

function pair(
  name: string,
  kind: string | undefined,
  id: string | undefined,
): { kind: string; id: string } | undefined {
  if (kind !== undefined && id !== undefined) return { kind, id }
  if (kind === undefined && id === undefined) return undefined
  throw KernelErrors.invalid_filter(`${name}_kind and ${name}_id must be given together`)
}
