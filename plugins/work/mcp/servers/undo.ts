import { canonicalJson } from '../../../../kernel/kit/canonical.js'
import { McpServerPolicy } from '../../../../schemas/settings/entries.js'
import type { McpServerView } from '../../../../schemas/settings/mcp-servers.js'
import { type ChangeSeen, pick, type Undo } from '../../../desk/changes/api.js'

const viewIn = (state: unknown): McpServerView | undefined => Object(state).mcp_server
const WRITTEN = [
  'command',
  'args',
  'url',
  'sandbox',
  ...Object.keys(McpServerPolicy),
  'catalog_entry',
  'catalog_version',
]
const HIDDEN = ['env_keys', 'secret_env_keys', 'header_keys', 'secret_header_keys', 'auth'] as const

const pathOf = ({ path, query }: Pick<ChangeSeen, 'path' | 'query'>) => {
  const search = new URLSearchParams(query)
  search.delete('target')
  const text = search.toString()
  return `${path}${text && `?${text}`}`
}

/** Undo of a written or removed server: restores the former one, as far as a reply shows it completely. */
export const serverUndo: Undo = {
  by: 'custom',
  of: 'mcp_server',
  compares: ['declared_in', ...WRITTEN, ...HIDDEN],
  reads: request => [pathOf(request)],
  request: change => {
    const [was, is] = [viewIn(change.before), viewIn(change.after)]
    const path = pathOf(change)
    if (is && (!was || was.declared_in !== is.declared_in)) return { method: 'DELETE', path }
    if (!was) return 'the server was not there'
    const hidden = HIDDEN.find(member => was[member] && canonicalJson(was[member]) !== '[]')
    if (hidden !== undefined)
      return 'values of its variables, headers and logins are never shown, so they are not kept; add it again: svc mcp add'
    const sidecar = was.declared_in.endsWith('mcp.json') ? 'target=sidecar' : ''
    return {
      method: 'PUT',
      path: (sidecar && path + (path.includes('?') ? '&' : '?') + sidecar) || path,
      body: { server: { name: was.name, ...pick(was, WRITTEN) } },
    }
  },
}
