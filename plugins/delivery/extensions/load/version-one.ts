import { Redactors } from '../../../../kernel/platform.js'
import type { Contribute, Plugin, PluginKernel } from '../../../../kernel/plugin.js'
import { annotated } from '../version-one/routes.js'
import { readSources } from './sources.js'

/**
 * Removed hooks of the kernel. Of `reply` and `encode` only the first entry had an effect, and it never belonged to an extension;
 * `redact` became a registry.
 */
const GONE = ['reply', 'encode', 'redact']

/** Former members of the kernel, with their replacements. */
const SUCCESSORS: Readonly<Record<string, string>> = {
  setting: 'kernel.config.get(TheSetting)',
  events: 'requires: { events: Events } of svc/plugins/events, and kernel.needs.events.emit(t, …)',
  tap: 'an entry of taps on the surface: tap(Token, provider => provider.hook, service => …)',
}
const USES = new RegExp(`\\bkernel\\s*\\??\\.\\s*(${Object.keys(SUCCESSORS).join('|')})\\b`, 'g')

/** Listed uses per extension. */
const LISTED = 20

/** Converts a plugin of `apiVersion = 1` to the current form. */
export function fromVersionOne(plugin: Plugin): Plugin {
  const { routes, hooks, registries = [] } = plugin.surface
  const { redact } = (hooks ?? {}) as { readonly redact?: Contribute<unknown>['entries'] }
  const surface = {
    ...plugin.surface,
    ...(routes && { routes: routes.map(annotated) }),
    ...(hooks && { hooks: Object.fromEntries(Object.entries(hooks).filter(([name]) => !GONE.includes(name))) }),
    ...(redact && { registries: [...registries, { to: Redactors, entries: redact }] }),
  }
  return { ...plugin, surface, apply: kernel => plugin.apply(withoutFormer(kernel)) }
}

/** A kernel whose former members throw an error that names the replacement. */
function withoutFormer(kernel: PluginKernel): PluginKernel {
  const former = Object.entries(SUCCESSORS).map(([member, successor]) => {
    const get = () => {
      throw new TypeError(`kernel.${member} is gone; write ${successor}`)
    }
    return [member, { get }] as const
  })
  return Object.defineProperties({ ...kernel }, Object.fromEntries(former))
}

/**
 * Uses of removed kernel members in the code of an `apiVersion = 1` extension, found by text search: a kernel under
 * another name is missed, and a match can be in a comment.
 */
export async function formerUses(files: Parameters<typeof readSources>[0]): Promise<string[]> {
  const found: string[] = []
  for await (const { file, text } of readSources(files)) {
    for (const [at, line] of text.split('\n').entries()) {
      for (const [, member = ''] of line.matchAll(USES))
        found.push(`${file}:${at + 1} uses kernel.${member}, which is gone; write ${SUCCESSORS[member]}`)
      if (found.length >= LISTED) return found.slice(0, LISTED)
    }
  }
  return found
}
