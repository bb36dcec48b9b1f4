import type { ReasonCode } from '../../../../schemas/tools.js'
import type { ToolBackendKind } from '../api.js'

const MAX = 256
/** Id prefixes and the backends that own them. */
const NAMESPACES: Readonly<Record<string, ToolBackendKind>> = {
  service: 'native',
  ext: 'extension_host',
  mcp: 'mcp',
}
const SEGMENT = /^[a-z0-9]+(?:[_-][a-z0-9]+)*$/

/** The problem of an id; undefined for `service__<name>`, `ext__<extension>__<tool>` and `mcp__<server>__<tool>`. */
export function idProblem(id: string): ReasonCode | undefined {
  if (id === '') return 'id_empty'
  if (id.length > MAX) return 'id_too_long'
  const segments = id.split('__')
  const [namespace = ''] = segments
  if (!Object.hasOwn(NAMESPACES, namespace)) return 'id_invalid_format'
  if (segments.some(segment => segment === '')) return 'id_empty_segment'
  const wanted = namespace === 'service' ? 2 : 3
  return segments.length === wanted && segments.every(segment => SEGMENT.test(segment))
    ? undefined
    : 'id_invalid_format'
}

/** The kind of backend that owns the prefix of an id; undefined for an unknown prefix. */
export const ownerOf = (id: string): ToolBackendKind | undefined => {
  const [namespace = ''] = id.split('__', 1)
  return Object.hasOwn(NAMESPACES, namespace) ? NAMESPACES[namespace] : undefined
}

/** Whether a backend uses a prefix of another one. */
export const isForeign = (id: string, kind: ToolBackendKind): boolean => ownerOf(id) !== kind
