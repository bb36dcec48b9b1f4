import { command } from '../../../../kernel/kit/commands/command-line.js'
import { type Clock, type Fault, KernelErrors, within } from '../../../../kernel/plugin.js'
import { ExtensionErrors } from '../errors.js'
import type { InstalledFolder } from '../folders/installed.js'
import type { Expected } from './expected.js'
import type { Instance } from './instance.js'

/** Milliseconds that a request waits for the routes of a loading extension. */
const WAIT_MS = 5000

/** Sources for finding the extensions of a name. */
export interface Sources {
  readonly clock: Clock
  readonly expected: Expected
  readonly folder: InstalledFolder
  readonly all: () => readonly Instance[]
}

/**
 * Handles a request for `/api/ext/<name>/…` without a route: waits for a loading extension, and returns the reason why
 * an installed one has no routes.
 * @returns true: the route has to be looked up again
 */
export async function unrouted(
  path: string,
  { clock, expected, folder, all }: Sources,
): Promise<Fault | true | undefined> {
  const [, name = ''] = /^\/api\/ext\/([^/]+)/.exec(path) ?? []
  const isLoading = expected.has(name) || folder.get(name)?.status === 'enabled'
  const loaded = expected.none(name).then(none => none && folder.looked(name).then(() => true))
  if (isLoading && !(await within(clock, WAIT_MS, loaded).catch(() => false))) {
    return ExtensionErrors.extension_loading(`${name} is being loaded; try again`, { retryAfter: 1 })
  }
  const instances = all().filter(instance => instance.name === name)
  const one = instances.find(({ enabled }) => enabled) ?? instances[0]
  return (one && whyUnrouted(one)) ?? (isLoading || undefined)
}

/** Why an extension has no routes now; undefined if its routes are registered. */
function whyUnrouted({ name, key, enabled, problem, waits, generation }: Instance): Fault | undefined {
  if (!enabled) return KernelErrors.route_not_found(`${key} is disabled`, { next: command('extension enable', name) })
  const why = generation ? waits && `waits: ${waits}` : problem && `did not load: ${problem.message}`
  if (why === undefined) return undefined
  return ExtensionErrors.extension_not_loaded(`${key} ${why}`, { next: command('extension info', name) })
}
