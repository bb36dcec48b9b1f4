import { Collected } from '../../../kernel/platform.js'
import type { Route } from '../../../kernel/plugin.js'
import type { K } from './needs.js'

/** A route that matches a path, with the values of its parameters. */
export interface Matched {
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
}

/** The routes that are currently served, found by method and path. */
export class RouteTable {
  /** Routes by method. */
  readonly #routes = new Map<string, readonly Route[]>()

  constructor(private readonly kernel: Pick<K, 'collect'>) {}

  /** Discards the cached routes after they have changed. */
  renew(): void {
    this.#routes.clear()
  }

  /** The route of a method at a path template. */
  at(method: string, template: string): Route | undefined {
    return this.#of(method).find(({ path }) => path === template)
  }

  /** The route that serves a path; the template with the fewest parameters wins. */
  match(method: string, path: string): Matched | undefined {
    const parts = path.split('/')
    const found = this.#of(method).flatMap(route => {
      const params = paramsOf(route.path.split('/'), parts)
      return params ? [{ route, params }] : []
    })
    return found.sort((a, b) => Object.keys(a.params).length - Object.keys(b.params).length)[0]
  }

  /**
   * Template of the GET route that shows the state a route changes: its own path, or the nearest parent path that ends with a
   * parameter. Undefined for a route that adds to a list.
   */
  readOf({ method, path }: Pick<Route, 'method' | 'path'>): string | undefined {
    if (method !== 'POST' && this.at('GET', path)) return path
    for (let at = path.slice(0, path.lastIndexOf('/')); at.includes('{'); at = at.slice(0, at.lastIndexOf('/')))
      if (at.endsWith('}') && this.at('GET', at)) return at
    return undefined
  }

  #of(method: string): readonly Route[] {
    const all = () => this.kernel.collect(Collected.routes).map(({ entry }) => entry.route)
    const routes = this.#routes.get(method) ?? all().filter(route => route.method === method)
    this.#routes.set(method, routes)
    return routes
  }
}

function paramsOf(template: readonly string[], parts: readonly string[]): Record<string, string> | undefined {
  if (template.length !== parts.length) return undefined
  const params: Record<string, string> = {}
  for (const [n, part] of template.entries()) {
    const value = parts[n] as string
    if (!part.startsWith('{')) {
      if (part !== value) return undefined
    } else if (value === '') return undefined
    else params[part.slice(1, -1)] = decoded(value)
  }
  return params
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Path of the list that contains an object. */
export const listOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))

/** Path template of the route beside another one: `/api/jobs/{id}/resume` beside `/api/jobs/{id}/pause`. */
export const neighbourOf = (path: string, verb: string): string => `${listOf(path)}/${verb}`

/** A path template with its parameters filled in. */
export const filled = (template: string, params: Readonly<Record<string, string>>): string =>
  template.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
