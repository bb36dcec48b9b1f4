import type { CommandData } from './commands/command-data.js'
import { type Entry, type Found, findCommand } from './commands/find-command.js'
import { localCommands } from './local.js'

/** A command line: its words for commands, and whether it asks for help. */
export interface Call {
  readonly words: readonly string[]
  readonly help: boolean
}

export function readCall(argv: readonly string[]): Call {
  const words = withGlobalsLast(argv)
  return { words, help: asksForHelp(words) }
}

export function entriesOf(data: CommandData): readonly Entry[] {
  return [...localCommands, ...data.routes, ...data.commands]
}

/** The command or group of a call; `term` is the word of `svc help <word>`, which may be a glossary entry. */
export function findCalled(argv: readonly string[], { words, help }: Call, entries: readonly Entry[]) {
  const found: Found = findCommand(help ? words.filter(word => !helpWords.has(word)) : words, entries, help)
  const isTerm = argv[0] === 'help' && argv.length === 2 && (found.is !== 'command' || found.entry.path !== argv[1])
  return { found, term: isTerm ? argv[1] : undefined }
}

const helpWords: ReadonlySet<string> = new Set(['--help', '-h'])

function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return argv[0] === 'help' || (end < 0 ? argv : argv.slice(0, end)).some(word => helpWords.has(word))
}

/**
 * `svc --json status` becomes `svc status --json`, `svc help status` becomes `svc status --help`; `--version` becomes a command.
 */
function withGlobalsLast(argv: readonly string[]): string[] {
  const words = [...argv]
  const globals: string[] = []
  while (words[0]?.startsWith('-') && !helpWords.has(words[0])) {
    if (words[0] === '--version') words.splice(0, 1, 'version')
    else globals.push(...words.splice(0, words[0] === '-o' || words[0] === '--output' ? 2 : 1))
  }
  if (words[0] === 'help') words.splice(0, 1, '--help')
  if (words[0] === '--help') words.push(words.shift() as string)
  return [...words, ...globals]
}
