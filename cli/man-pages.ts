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

const WIDTH = 72

/** Category of the commands that belong to no group. */
const OWN = 'svc'

/** Mark in each page that identifies its generator. */
export const MAN_MARK = 'generated from the commands of svc'

const headOf = (name: string, about: string, version: string) => [
  `.\\" ${MAN_MARK}`,
  `.TH ${name.toUpperCase()} 1 "${dayOfBuild()}" "svc ${version}" "svc manual"`,
  '.SH NAME',
  plain(`${name} - ${about}`),
]

/** The date of the sources if the build sets one, else today. */
function dayOfBuild(): string {
  const seconds = Number(process.env.SOURCE_DATE_EPOCH)
  return new Date(seconds > 0 ? seconds * 1000 : Date.now()).toISOString().slice(0, 10)
}

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

const seeAlso = (names: readonly string[]) => [
  '.SH SEE ALSO',
  ...names.map((name, at) => `${bold(name)}(1)${at < names.length - 1 ? ',' : ''}`),
]

/** `noDaemon` as `no daemon`. */
const words = (name: string) => name.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)

/** Text without troff requests, escapes and soft hyphens. */
function plain(text: string): string {
  const safe = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replace(/\s+/g, ' ')
  return folded(safe)
    .map(line => (/^[.']/.test(line) ? `\\&${line}` : line))
    .join('\n')
}

/** Wrapped source lines of a page; troff fills them again. */
function folded(text: string): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? ''
    if (last !== '' && last.length + word.length > WIDTH) lines.push(word)
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`
  }
  return lines
}

const bold = (text: string) => `\\fB${plain(text)}\\fR`
