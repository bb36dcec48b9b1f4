import type { Definition } from 'clipanion'
import type { Entry } from './commands/find-command.js'
import { usageLine } from './commands/help.js'
import { definitionsOf } from './commands/parse-words.js'
import { exitCodes } from './fault.js'

/** Manual pages by file name: `svc.1`, and one for each group of commands. Made from the clipanion definitions. */
export function manPages(entries: readonly Entry[], version: string): ReadonlyMap<string, string> {
  const groups = new Map<string, [Definition, Entry][]>()
  for (const [at, definition] of definitionsOf(entries).entries()) {
    const group = definition.category?.trim() ?? ''
    groups.set(group, [...(groups.get(group) ?? []), [definition, entries[at] as Entry]])
  }
  const own = groups.get(OWN) ?? []
  groups.delete(OWN)
  const pages = [...groups].map(([group, commands]) => {
    const head = headOf(`svc-${group}`, `the commands of svc ${group}`, version)
    const text = [...head, '.SH COMMANDS', ...commands.flatMap(lines), ...seeAlso(['svc'])]
    return [`svc-${group}.1`, text] as const
  })
  const main = [
    ...headOf('svc', 'run durable agent work on this machine', version),
    '.SH COMMANDS',
    ...own.flatMap(lines),
    '.SH EXIT STATUS',
    ...Object.entries(exitCodes).flatMap(([name, code]) => ['.TP', bold(`${code}`), plain(words(name))]),
    ...seeAlso([...groups.keys()].map(group => `svc-${group}`)),
  ]
  return new Map([['svc.1', main] as const, ...pages].map(([name, text]) => [name, `${text.join('\n')}\n`]))
}

/** Category of the commands that belong to no group. */
const OWN = 'svc'

const headOf = (name: string, about: string, version: string) => [
  `.TH ${name.toUpperCase()} 1 "" "svc ${version}" "svc manual"`,
  '.SH NAME',
  plain(`${name} - ${about}`),
]

function lines([{ path, description, options }, entry]: [Definition, Entry]): string[] {
  return [
    `.SS ${plain(path)}`,
    plain(description?.trim() ?? ''),
    '.PP',
    bold(usageLine(entry)),
    ...options.flatMap(option => [
      '.TP',
      bold(option.definition.replace(' #0', ' <value>')),
      plain(option.description?.trim() ?? ''),
    ]),
  ]
}

const seeAlso = (names: readonly string[]) => ['.SH SEE ALSO', names.map(name => `${bold(name)}(1)`).join(', ')]

/** `noDaemon` as `no daemon`. */
const words = (name: string) => name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)

/** Text in which troff finds no request, escape or soft hyphen. */
function plain(text: string): string {
  const safe = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replace(/\s+/g, ' ')
  return /^[.']/.test(safe) ? `\\&${safe}` : safe
}

const bold = (text: string) => `\\fB${plain(text)}\\fR`
