import type { LocalContext } from '../local.js'
import { ownerOf } from './facts.js'
import { call, systemctl } from './manager-call.js'
import { installedServices } from './service-of.js'

/**
 * Has the service manager of the user start the daemon of this home, where a service of it is installed: a daemon that was started
 * beside it would keep the service from starting. False where there is none, or the manager did not.
 */
export async function startByManager({ io, home }: Pick<LocalContext, 'io' | 'home'>): Promise<boolean> {
  const found = installedServices(ownerOf(io.env)).find(
    ({ place, written }) => place.supervisor !== 'systemd-system' && written.env.SVC_HOME === home,
  )
  if (!found) return false
  const { place } = found
  const words =
    place.supervisor === 'launchd'
      ? ['launchctl', 'kickstart', `gui/${process.getuid?.() ?? 0}/${place.name}`]
      : systemctl(place, 'start', place.name)
  return (await call(io, words)).ok
}
