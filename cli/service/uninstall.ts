import { rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { markOf, serviceText } from '../../plugins/desk/daemon/installed-service.js'
import { CliFault, exitCodes } from '../fault.js'
import type { LocalContext } from '../local.js'
import { refusal } from './install.js'
import { call, systemctl } from './manager-call.js'
import { serviceOf, serviceOwner } from './service-of.js'

/** `service uninstall`: stops the service and removes the files that `service install` wrote. The home stays. */
export async function uninstallService(context: LocalContext): Promise<undefined> {
  const { out, io, options, progress } = context
  const owner = serviceOwner(context)
  const service = serviceOf(owner, context)
  const all = [service, ...(service.socket ? [service.socket] : [])]
  const there = all.flatMap(({ name, file }) => {
    const text = serviceText(file)
    return text === undefined ? [] : [{ name, file, mark: markOf(text) }]
  })
  if (there.length === 0) {
    if (out.json) out.value({ status: 'not_installed', home: owner.home, files: [] })
    else out.line(`no service is installed for ${owner.home}`)
    return undefined
  }
  for (const { file, mark } of there) {
    // A file of another program is not removed.
    if (mark === 'foreign') throw foreign(file)
    if (mark === 'edited' && options.force !== true) throw refusal(file, mark, 'uninstall')
  }
  const disable =
    service.supervisor === 'launchd'
      ? ['launchctl', 'bootout', `gui/${process.getuid?.() ?? 0}/${service.name}`]
      : systemctl(service, 'disable', '--now', ...there.map(({ name }) => name))
  const { unreached } = await progress.during('waiting for the service to stop', () => call(io, disable))
  const files = there.map(({ file }) => file)
  try {
    for (const file of files) {
      rmSync(file, { force: true })
      // Removes the links of a manager that was unreachable.
      if (service.supervisor !== 'launchd') for (const link of linksOf(file)) rmSync(link, { force: true })
    }
  } catch (error) {
    throw new CliFault('service_unwritable', `the unit cannot be removed: ${(error as Error).message}`, {
      exit: exitCodes.refused,
      next: service.supervisor === 'systemd-system' ? 'sudo svc service uninstall --system' : undefined,
      cause: error,
    })
  }
  const after = service.supervisor === 'launchd' ? [] : [systemctl(service, 'daemon-reload')]
  for (const words of after) if (!unreached) await call(io, words)
  const commands = unreached ? ['svc daemon stop', ...after.map(words => words.join(' '))] : []
  if (out.json) return void out.value({ status: 'removed', service: service.name, files, home: owner.home, commands })
  for (const file of files) out.line(`removed ${file}`)
  if (unreached) {
    out.line('The service manager could not be asked to stop it. Run:')
    for (const command of commands) out.line(`  ${command}`)
  }
  out.line(`${owner.home} stays as it is`)
  return undefined
}

const linksOf = (file: string): string[] =>
  ['default', 'multi-user', 'sockets'].map(target => join(dirname(file), `${target}.target.wants`, basename(file)))

function foreign(file: string): CliFault {
  return new CliFault('service_foreign', `${file} was not written by svc service install, so it is not removed`, {
    exit: exitCodes.conflict,
    next: `less ${file}`,
  })
}
