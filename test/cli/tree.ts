import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CommandData } from '../../cli/commands/command-data.js'
import type { Entry } from '../../cli/commands/find-command.js'
import { localCommands } from '../../cli/local.js'

/** Folder of the build. */
export const dist = fileURLToPath(new URL('../../dist/', import.meta.url))

/** The commands that the build made. */
export const data: CommandData = JSON.parse(readFileSync(join(dist, 'commands.json'), 'utf8'))

export const entries: readonly Entry[] = [...localCommands, ...data.routes, ...data.commands]

/** A command line in words, as a shell would make of it. */
export function wordsOf(command: string): string[] {
  return command.match(/"[^"]*"|'[^']*'|\S+/g)?.map(word => word.replace(/^["']|["']$/g, '')) ?? []
}
