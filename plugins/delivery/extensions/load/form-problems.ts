import { annotationKinds, wrongAnnotation } from '../../../../kernel/kit/annotations/index.js'
import { nearest } from '../../../../kernel/kit/text.js'
import type { Plugin, Surface } from '../../../../kernel/plugin.js'
import type { MembersOfOne } from '../version-one/routes.js'

/** All members of a surface; the type check fails if one is missing. */
const MEMBERS = Object.keys({
  kinds: 1,
  reconcilers: 1,
  routes: 1,
  events: 1,
  settings: 1,
  tables: 1,
  inherits: 1,
  owned: 1,
  ofCatalog: 1,
  services: 1,
  quiesce: 1,
  errors: 1,
  commands: 1,
  secrets: 1,
  declares: 1,
  registries: 1,
  taps: 1,
  hooks: 1,
} satisfies Record<keyof Surface<never>, 1>)

/** Replacements of the route members of `apiVersion = 1`. */
const SUCCESSORS: Readonly<Record<keyof MembersOfOne, string>> = {
  area: "describe('…')",
  errors: "describe('…', { errors })",
  runsCode: 'runsCode(…)',
  cli: "cli('…')",
}

/**
 * Problems that a plugin of `apiVersion = 2` would not notice: unknown members, which are ignored, and wrong
 * annotations.
 */
export function formProblems({ surface }: Plugin): string[] {
  return [
    ...Object.keys(surface).flatMap(member => {
      if (MEMBERS.includes(member)) return []
      const [meant] = nearest(member, MEMBERS)
      return `its surface has the unknown member ${member}${meant ? `; did you mean ${meant}?` : ''}`
    }),
    ...(surface.routes ?? []).flatMap(route => {
      const where = `the route ${route.method} ${route.path}`
      const old = (Object.keys(SUCCESSORS) as (keyof MembersOfOne)[]).filter(member => member in route)
      const wrong = wrongAnnotation(route.with ?? [], annotationKinds)
      return [
        ...old.map(member => `${where} has ${member}, a member of apiVersion 1; write with: [${SUCCESSORS[member]}]`),
        ...(wrong === undefined ? [] : [`${where} ${wrong}`]),
      ]
    }),
  ]
}
