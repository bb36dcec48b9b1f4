import type { Route } from '../contract/route.js'

/** Stable: derived from method and path alone, `getThingsByIdParts`. */
export function operationId({ method, path }: Pick<Route, 'method' | 'path'>): string {
  const words = path
    .replace(/^\/api\//, '')
    .replaceAll('{', 'by_')
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
  return method.toLowerCase() + words.map(word => word[0]?.toUpperCase() + word.slice(1)).join('')
}
