import { errorsOf } from '../contract/errors.js'
import type { Plugin } from '../contract/plugin.js'
import { operationId } from '../contract/route.js'

/** What a surface takes for itself, each as `what key`; the same text on two surfaces is a conflict. */
const CLAIMS = new WeakMap<object, readonly string[]>()

function claimsOf({ surface }: Plugin): readonly string[] {
  const known = CLAIMS.get(surface)
  if (known) return known
  const { kinds = [], reconcilers = [], routes = [], commands = [], errors = [], events = [], settings = [] } = surface
  const claims = [
    ...kinds.map(({ name }) => `kind ${name}`),
    ...reconcilers.map(({ kind }) => `reconciler of ${kind.name}`),
    ...routes.map(({ method, path }) => `route ${method} ${path.replace(/\{[^}]+\}/g, '{}')}`),
    ...routes.map(route => `operation ${operationId(route)}`),
    ...commands.map(({ path }) => `command ${path}`),
    ...routes.flatMap(({ cli }) => (cli ? [`command ${cli.path}`] : [])),
    ...errors.flatMap(table => Object.keys(errorsOf(table)).map(code => `error ${code}`)),
    ...events.map(({ name }) => `event ${name}`),
    ...settings.map(({ path }) => `setting ${path}`),
  ]
  CLAIMS.set(surface, claims)
  return claims
}

/** Names of kinds, routes, commands, errors, events and settings, and who has them. Of two plugins the later one fails. */
export class Claims {
  readonly #holders = new Map<string, string>()

  /**
   * What a plugin wants although another one has it, one of `rivals` wants it as well, or it claims it twice; undefined: nothing.
   * What a plugin of the same name holds, which this one is to replace, is no conflict.
   */
  conflict(plugin: Plugin, rivals: readonly Plugin[] = []): string | undefined {
    const taken = new Map<string, string>()
    for (const rival of rivals) for (const claim of claimsOf(rival)) taken.set(claim, rival.name)
    for (const claim of claimsOf(plugin)) {
      const held = this.#holders.get(claim)
      const holder = (held === plugin.name ? undefined : held) ?? taken.get(claim)
      if (holder !== undefined) return `the ${claim} belongs to ${holder} already`
      taken.set(claim, plugin.name)
    }
    return undefined
  }

  take(plugin: Plugin): void {
    for (const claim of claimsOf(plugin)) this.#holders.set(claim, plugin.name)
  }

  release(plugin: Plugin): void {
    for (const claim of claimsOf(plugin)) if (this.#holders.get(claim) === plugin.name) this.#holders.delete(claim)
  }
}
