import { platform, userInfo } from 'node:os'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { messageOf } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from './api.js'
import { fine } from './checks.js'
import { readService, type ServiceOwner, servicePlaces, serviceProblems, serviceText } from './installed-service.js'

/** The owner of a service for the user of this process. */
export function ownServiceOwner(home: string, userHome: string, configHome: string | undefined): ServiceOwner {
  return { home, userHome, user: userName(), platform: platform(), configHome }
}

/** Falls back to the user id: a process may have an id without a user entry. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? '')
  }
}

/** Problems that would prevent the next start of an installed service of this home; none if no service is installed. */
export function serviceItems(owner: ServiceOwner): DiagnosticItem[] {
  return servicePlaces(owner).flatMap(({ supervisor, file, name }) => {
    const common = { id: `daemon.service.${name}`, category: 'daemon' }
    try {
      const text = serviceText(file)
      if (text === undefined) return []
      const problems = serviceProblems(readService(text, supervisor), owner.home)
      if (problems.length === 0)
        return [fine(common.id, common.category, 'service_ok', 'Service', `${file} starts this daemon`)]
      return problems.map(({ code, message }) =>
        finding({
          ...common,
          code,
          severity: 'warning',
          title: `Service ${name}`,
          message: `${message} (${file}); the next start fails or runs without it`,
          suggested_command: command('service install'),
        }),
      )
    } catch (error) {
      const message = `${file} cannot be read: ${messageOf(error)}`
      return [
        finding({ ...common, code: 'service_unreadable', severity: 'warning', title: `Service ${name}`, message }),
      ]
    }
  })
}
