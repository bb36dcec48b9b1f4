import { KernelErrors } from '../contract/errors.js'
import { given } from '../contract/kernel-tokens.js'
import { isDropIn, type Plugin } from '../contract/plugin.js'
import type { Store } from '../store/index.js'
import type { Host } from './host.js'

/**
 * What one plugin may do to those with a dot in their name, which come and go while the rest runs. Changes are made one after the
 * other; while the caller itself starts or ends, and during the boot, they are refused with `change_under_way`.
 */
export function dropInsFor(host: Host, owner: string, store: Pick<Store, 'forget' | 'db'>) {
  const checkName = (own: string) => {
    if (!isDropIn(own)) throw KernelErrors.forbidden(`${own} comes with the program and stays as it is`)
  }
  const change = async <T>(own: string, work: (name: string | undefined) => Promise<T>): Promise<T> => {
    const { scope, state } = host.slots.get(owner) ?? {}
    if (!host.slots.booted || !scope || state?.status !== 'active') throw KernelErrors.change_under_way()
    checkName(own)
    return work(host.slots.nameOf(own))
  }
  return {
    /**
     * Loads a plugin, or puts it in the place of the version that is there, which comes back when the new one does not start.
     * @throws Fault `reload_failed`, saying why
     */
    put: (plugin: Plugin) => change(plugin.name, name => (name ? host.reload(plugin) : host.load(plugin))),
    /** Unloads a plugin; what it replaced comes back. */
    remove: (own: string) => change(own, name => host.unload(name ?? own)),
    /** Why nothing of that name is to run: the configuration has it disabled, or it is left out this time. */
    whyNot: (own: string) => host.slots.whyNot(own) ?? host.slots.whyNoDropIn(),
    /** Whether it is left out of this run for what it did. */
    isLeftOut: (own: string) => host.slots.isLeftOut(own),
    /** It is no longer left out: its code is another. It starts when it is put. */
    retry: (own: string) => host.slots.retry(own),
    /**
     * Drops the tables of a plugin that was removed; resolves when they are gone from the disk. Safe to repeat. Nothing is waited
     * for, so that it can be done while the caller starts as well.
     */
    async purge(own: string) {
      checkName(own)
      if (host.slots.nameOf(own)) throw KernelErrors.forbidden(`${own} runs: remove it first`)
      store.forget(own)
      await store.db.durable()
    },
  }
}

/** Plugins that come and go while the rest runs. */
export type DropInsApi = ReturnType<typeof dropInsFor>

/** Plugins that come and go while the rest runs; whoever requires it changes what runs. */
export const DropIns = given<DropInsApi>('kernel.drop-ins@1')
