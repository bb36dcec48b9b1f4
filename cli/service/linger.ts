import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { shellWord } from '../../kernel/kit/commands/command-line.js'

const LINGERING = '/var/lib/systemd/linger'

/**
 * Whether the services of a user go on without a session of theirs: logind keeps a file for each who has asked for it. Undefined where
 * there is no such folder, so that it cannot be told.
 */
export function isLingering(user: string, folder = LINGERING): boolean | undefined {
  // It doubles a backslash, which names of a domain have.
  if (existsSync(join(folder, user.replaceAll('\\', '\\\\')))) return true
  // logind makes the folder for the first who asks.
  return existsSync('/run/systemd/seats') || existsSync(folder) ? false : undefined
}

export const lingerCommand = (user: string): string => `loginctl enable-linger ${shellWord(user)}`
