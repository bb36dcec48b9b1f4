import { errorsOf } from '../contract/errors.js'
import type { Plugin } from '../contract/plugin.js'
import { operationId } from '../contract/route.js'
import { tablePrefix } from '../store/statement-check.js'

/** Claims of each surface: names that only one plugin may have, as `route GET /things`. Cached, with the number of each. */
const CLAIMS = new WeakMap<object, ReadonlyMap<string, number>>()

/** Number of surfaces that made each claim. Most claims have one surface, so that no rival needs to be searched for them. */
const MAKERS = new Map<string, number>()

/** Counts the claims of a plugin: a number above 1 is a conflict with itself. */
function claimsOf({ name, surface }: Plugin): ReadonlyMap<string, number> {
  const known = CLAIMS.get(surface)
  if (known) return known
  const { kinds = [], reconcilers = [], routes = [], commands = [], errors = [], events = [], settings = [] } = surface
  const { tables, inherits = [] } = surface
  const claims = [
    ...kinds.map(({ name }) => `kind ${name}`),
    ...reconcilers.map(({ kind }) => `reconciler of ${kind.name}`),
    ...routes.map(({ method, path }) => `route ${method} ${path.replace(/\{[^}]+\}/g, '{}')}`),
    ...routes.map(route => `operation ${operationId(route)}`),
    ...commands.map(({ path }) => `command ${path}`),
    ...routes.flatMap(route => route.with?.flatMap(({ claims = [] }) => claims) ?? []),
    ...errors.flatMap(table => Object.keys(errorsOf(table)).map(code => `error ${code}`)),
    ...events.map(({ name }) => `event ${name}`),
    ...settings.map(({ path }) => `setting ${path}`),
    ...(tables ? [`table prefix ${tablePrefix(name)}`] : []),
    ...(tables ?? []).map(({ id }) => `migration ${id} of ${name}`),
    ...inherits.flatMap(({ prefixes }) => prefixes.map(prefix => `table prefix ${prefix}`)),
    ...inherits.flatMap(({ stream, migrations }) => migrations.map(({ id }) => `migration ${id} of ${stream}`)),
  ]
  const counts = new Map<string, number>()
  for (const claim of claims) counts.set(claim, (counts.get(claim) ?? 0) + 1)
  CLAIMS.set(surface, counts)
  for (const claim of counts.keys()) MAKERS.set(claim, (MAKERS.get(claim) ?? 0) + 1)
  return counts
}

/**
 * The first conflict of a plugin's claims, with `others` or with itself; undefined when there is none. A plugin of the same name is
 * no rival: this one replaces it.
 */
export function conflictOf(plugin: Plugin, others: readonly Plugin[]): string | undefined {
  const rivals = others.filter(({ name }) => name !== plugin.name).map(other => ({ other, claims: claimsOf(other) }))
  for (const [claim, count] of claimsOf(plugin)) {
    const holder = count > 1 ? plugin : MAKERS.get(claim) !== 1 && rivals.find(one => one.claims.has(claim))?.other
    if (holder) return `the ${claim} is already registered by ${holder.name}`
  }
  return undefined
}

/**
 * Claims that no other plugin relies on: a replacement may differ in them. The program's commands are always there and call routes
 * by their paths.
 */
const PRIVATE = /^(?:operation|reconciler|error|command|table prefix|migration) /

/** Everything on a surface that other plugins can use: its token, its public claims, its registries and those that it fills. */
function offersOf(plugin: Plugin): string[] {
  const { provides, surface } = plugin
  const { declares = [], registries = [] } = surface
  return [
    ...(provides ? [`token ${provides.id}`] : []),
    ...[...claimsOf(plugin).keys()].filter(claim => !PRIVATE.test(claim)),
    ...declares.map(({ registry }) => `registry ${registry}`),
    ...registries.map(({ to }) => `entries in ${to.registry}`),
  ]
}

/** The offers of a replaced plugin that its replacement lacks, as an error text; undefined when it has them all. */
export function lackOf(plugin: Plugin, original: Plugin | undefined): string | undefined {
  if (!original) return undefined
  const has = new Set(offersOf(plugin))
  const lacks = [...new Set(offersOf(original))].filter(offer => !has.has(offer))
  return lacks.length === 0 ? undefined : `it lacks parts of ${original.name} that are in use: ${lacks.join(', ')}`
}
