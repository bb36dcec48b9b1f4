import { platform, userInfo } from 'node:os'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { messageOf } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from './api.js'
import { fine } from './checks.js'
import { readService, type ServiceOwner, servicePlaces, serviceProblems, serviceText } from './installed-service.js'

/** Whose service the one of this process would be. */
export function ownServiceOwner(home: string, userHome: string, configHome: string | undefined): ServiceOwner {
  return { home, userHome, user: userName(), platform: platform(), configHome }
}

/** A process may have a user id that no user has. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? '')
  }
}

/** What keeps an installed service of this home from its next start; nothing where none is installed. */
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
          message: `${message} (${file}); the next start fails or lacks it`,
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
