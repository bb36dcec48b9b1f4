import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { shellWord } from '../../kernel/kit/commands/command-line.js'

const LINGERING = '/var/lib/systemd/linger'

/**
 * Whether the services of a user continue without a login session: logind keeps a file for each user with lingering. Undefined
 * without that folder.
 */
export function isLingering(user: string, folder = LINGERING): boolean | undefined {
  // logind doubles backslashes, which occur in names of a domain.
  if (existsSync(join(folder, user.replaceAll('\\', '\\\\')))) return true
  // logind creates the folder for the first user with lingering.
  return existsSync('/run/systemd/seats') || existsSync(folder) ? false : undefined
}

export const lingerCommand = (user: string): string => `loginctl enable-linger ${shellWord(user)}`
