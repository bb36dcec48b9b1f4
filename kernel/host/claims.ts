import { errorsOf } from '../contract/errors.js'
import type { Plugin } from '../contract/plugin.js'
import { operationId } from '../contract/route.js'
import { tablePrefix } from '../store/statement-check.js'
import { contributionsOf } from './contributions.js'

/** What a surface takes for itself, each as `what key`; the same text on two surfaces is a conflict. */
const CLAIMS = new WeakMap<object, ReadonlyMap<string, number>>()

/** How often it takes each. */
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
  return counts
}

/**
 * What a plugin wants although one of `others` has it, or it claims it twice; undefined: nothing. What one of its own name has, which
 * this one is to replace, is no conflict.
 */
export function conflictOf(plugin: Plugin, others: readonly Plugin[]): string | undefined {
  const rivals = others.filter(({ name }) => name !== plugin.name)
  for (const [claim, count] of claimsOf(plugin)) {
    const holder = count > 1 ? plugin : rivals.find(other => claimsOf(other).has(claim))
    if (holder) return `the ${claim} belongs to ${holder.name} already`
  }
  return undefined
}

/**
 * Claims that no other plugin relies on: a replacement may run, and fail, in its own way. The commands of the program stay what they
 * are, and ask the routes by their paths.
 */
const PRIVATE = /^(?:operation|reconciler|error|command|table prefix|migration) /

/** What others find on a surface: what it claims for itself, its registries, and the registries that it fills. */
function offersOf(plugin: Plugin): string[] {
  const { provides, surface } = plugin
  const { declares = [] } = surface
  return [
    ...(provides ? [`token ${provides.id}`] : []),
    ...[...claimsOf(plugin).keys()].filter(claim => !PRIVATE.test(claim)),
    ...declares.map(({ registry }) => `registry ${registry}`),
    ...contributionsOf(surface).map(({ to }) => `entries in ${to.registry}`),
  ]
}

/** What a replacement lacks of what the plugin offers whose place it takes; undefined: nothing. */
export function lackOf(plugin: Plugin, original: Plugin | undefined): string | undefined {
  if (!original) return undefined
  const has = new Set(offersOf(plugin))
  const lacks = [...new Set(offersOf(original))].filter(offer => !has.has(offer))
  return lacks.length === 0 ? undefined : `it lacks what ${original.name} has and others use: ${lacks.join(', ')}`
}
