import { KernelErrors } from '../contract/errors.js'
import { kernelToken } from '../contract/kernel-tokens.js'
import { isDropIn, type Plugin } from '../contract/plugin.js'
import type { Store } from '../store/index.js'
import type { Host } from './host.js'

/**
 * The operations of one plugin on drop-ins, plugins with a dot in their name that come and go at runtime. Changes run one at a
 * time; during the boot, and while the caller itself starts or ends, they are refused with `change_under_way`.
 */
export function dropInsFor(host: Host, owner: string, store: Pick<Store, 'forget' | 'db'>) {
  const checkName = (own: string) => {
    if (!isDropIn(own)) throw KernelErrors.forbidden(`${own} is built in and cannot be changed`)
  }
  const change = async <T>(own: string, work: (name: string | undefined) => Promise<T>): Promise<T> => {
    const { scope, state } = host.slots.get(owner) ?? {}
    if (!host.slots.booted || !scope || state?.status !== 'active') throw KernelErrors.change_under_way()
    checkName(own)
    return work(host.slots.nameOf(own))
  }
  return {
    /**
     * Loads a plugin or replaces its running version. That version runs again when the new one does not start.
     * @throws Fault `reload_failed`, saying why
     */
    put: (plugin: Plugin) => change(plugin.name, name => (name ? host.reload(plugin) : host.load(plugin))),
    /** Unloads a plugin. The plugin that it replaced runs again. */
    remove: (own: string) => change(own, name => host.unload(name ?? own)),
    /** The reason why a plugin of that name must not run: disabled by the configuration, left out of this run, or safe mode. */
    whyNot: (own: string) => host.slots.whyNot(own) ?? host.slots.whyNoDropIn(),
    /** Whether the plugin is left out of this run because of earlier faults. */
    isLeftOut: (own: string) => host.slots.leftOut.has(own),
    /** Ends the exclusion of a plugin whose code has changed. {@link put} starts it. */
    retry: (own: string) => void host.slots.leftOut.delete(own),
    /**
     * Drops the tables of a removed plugin; resolves when they are gone from the disk. Safe to repeat. It does not queue behind
     * other changes, so that it works while the caller starts.
     */
    async purge(own: string) {
      checkName(own)
      if (host.slots.nameOf(own)) throw KernelErrors.forbidden(`${own} runs: remove it first`)
      store.forget(own)
      await store.db.durable()
    },
  }
}

export type DropInsApi = ReturnType<typeof dropInsFor>

/** Loads and unloads drop-ins at runtime. A plugin that requires this service can change which plugins run. */
export const DropIns = kernelToken<DropInsApi>('kernel.drop-ins@1')
