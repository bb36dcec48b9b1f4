import { annotationsOf, Cli } from '../../../../kernel/kit/annotations/index.js'
import { isDropIn } from '../../../../kernel/platform.js'
import type { Plugin } from '../../../../kernel/plugin.js'

/**
 * Names of an extension begin with its vendor, so that later names of the daemon cannot collide: kinds and events
 * `acme.…`, error codes `acme_…`, commands `acme …`. A replacement uses the names of the replaced plugin.
 * @returns names that break the rule
 */
export function namespaceProblems({ name, replaces, surface }: Plugin): string[] {
  if (!isDropIn(name) || replaces !== undefined) return []
  const { kinds = [], events = [], errors = [], commands = [], routes = [] } = surface
  const [vendor = ''] = name.split('.')
  const code = `${vendor.replaceAll('-', '_')}_`
  const paths = [...commands, ...routes.flatMap(route => annotationsOf(route, Cli))].map(({ path }) => path)
  return [
    ...astray(
      'kind',
      kinds.map(kind => kind.name),
      `${vendor}.`,
    ),
    ...astray(
      'event',
      events.map(event => event.name),
      `${vendor}.`,
    ),
    ...astray(
      'error code',
      errors.flatMap(table => Object.keys(table)),
      code,
    ),
    ...astray(
      'command',
      paths.map(path => `${path} `),
      `${vendor} `,
    ),
  ]
}

const astray = (what: string, names: readonly string[], prefix: string): string[] =>
  names
    .filter(one => !one.startsWith(prefix))
    .map(one => `the ${what} ${one.trim()} does not begin with ${JSON.stringify(prefix)}`)
