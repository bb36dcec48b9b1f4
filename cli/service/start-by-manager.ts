import type { LocalContext } from '../local.js'
import { ownerOf } from './facts.js'
import { call, systemctl } from './manager-call.js'
import { installedServices } from './service-of.js'

/**
 * Lets the user's service manager start the daemon of this home, if a service is installed: a daemon started outside of it would
 * block the service. False without a service, or when the manager failed.
 */
export async function startByManager({ io, home }: Pick<LocalContext, 'io' | 'home'>): Promise<boolean> {
  const found = installedServices(ownerOf(io.env)).find(
    ({ service, written }) => service.supervisor !== 'systemd-system' && written.env.SVC_HOME === home,
  )
  if (!found) return false
  const { service } = found
  const words =
    service.supervisor === 'launchd'
      ? ['launchctl', 'kickstart', `gui/${process.getuid?.() ?? 0}/${service.name}`]
      : systemctl(service, 'start', service.name)
  return (await call(io, words)).ok
}
