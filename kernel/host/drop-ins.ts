import { KernelErrors } from '../contract/errors.js'
import type { DropIns } from '../contract/host-view.js'
import { isDropIn } from '../contract/plugin.js'
import type { Host } from './host.js'

/** What one plugin may do to others. `forget` drops the tables of a plugin, durably. */
export function dropInsFor(host: Host, owner: string, forget: (name: string) => Promise<void>): DropIns {
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
    put: plugin => change(plugin.name, name => (name ? host.reload(plugin) : host.load(plugin))),
    remove: own => change(own, name => host.unload(name ?? own)),
    whyNot: own => host.slots.whyNot(own) ?? host.slots.whyNoDropIn(),
    // Nothing is waited for, so that it can be done while the caller starts as well.
    async purge(own) {
      checkName(own)
      if (host.slots.nameOf(own)) throw KernelErrors.forbidden(`${own} runs: remove it first`)
      await forget(own)
    },
  }
}
