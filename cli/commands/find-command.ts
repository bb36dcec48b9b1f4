import { nearest } from '../../kernel/kit/text.js'
import type { LocalCommand } from '../local.js'
import type { ModuleCommand, RouteCommand } from './command-data.js'

/** Any command: made from a route, written by hand in a plugin, or part of the command line itself. */
export type Entry = RouteCommand | ModuleCommand | LocalCommand

/** What a command line names. */
export type Found =
  | { readonly is: 'command'; readonly entry: Entry; readonly rest: readonly string[] }
  | { readonly is: 'group'; readonly name: string; readonly rest: readonly string[] }
  | { readonly is: 'unknown'; readonly text: string; readonly group: string; readonly alike: readonly string[] }

/** Words that people use for one another; which of them a group has is seen from its help alone. */
const synonyms: readonly (readonly string[])[] = [
  ['show', 'info', 'get', 'inspect', 'view', 'describe'],
  ['list', 'ls'],
  ['remove', 'delete', 'rm', 'uninstall'],
  ['add', 'new', 'create', 'init', 'install'],
]

/** Groups within groups that one may name alone, in the singular. */
export const groups: ReadonlyMap<string, string> = new Map([
  ['job', 'automation jobs'],
  ['trigger', 'automation triggers'],
])

/** Verbs that mean the same in every group, and the names that some groups have for them. */
const verbs: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    show: ['info', 'get', 'inspect'],
    create: ['new', 'add'],
    update: ['edit'],
    delete: ['remove'],
    resume: ['enable'],
    pause: ['disable'],
  }),
)

/**
 * The command line in the names that commands have: groups in the plural or the singular, groups within groups by
 * their own name (`jobs list` is `automation jobs list`), and the verbs of `docs/cli.md` in every group that has such
 * a command under another name (`session show` is `session info`). A name that is there is never taken for another.
 */
function inOwnNames(argv: readonly string[], entries: readonly Entry[]): readonly string[] {
  const end = argv.findIndex(word => word.startsWith('-'))
  const words = end < 0 ? argv : argv.slice(0, end)
  const begins = (path: string) => entries.some(entry => `${entry.path} `.startsWith(`${path} `))
  const isGroup = (path: string) => entries.some(entry => entry.path.startsWith(`${path} `))
  let group = ''
  const found: string[] = []
  for (const [at, word] of words.entries()) {
    const named = (name: string) => (group === '' ? name : `${group} ${name}`)
    const own = [word, ...numbersOf(word)].find((name, i) => (i === 0 ? begins(named(name)) : isGroup(named(name))))
    const nested =
      group === '' ? [word, ...numbersOf(word)].flatMap(name => groups.get(name) ?? []).find(isGroup) : undefined
    const verb = group === '' ? undefined : verbs.get(word)?.find(name => begins(named(name)))
    const name = own ?? nested ?? verb ?? word
    found.push(...name.split(' '))
    group = named(name)
    if (!isGroup(group)) return [...found, ...argv.slice(at + 1)]
  }
  return [...found, ...argv.slice(words.length)]
}

/** A word in the other number: `session` for `sessions` and the other way round. */
function numbersOf(word: string): string[] {
  return word.endsWith('s') ? [word.slice(0, -1)] : [`${word}s`]
}

/**
 * The command with the longest path that the arguments begin with. A group within a group stands for its `list`:
 * `automation jobs` is `automation jobs list`, but whoever asks for `help` has not decided for the list yet.
 */
export function findCommand(typed: readonly string[], entries: readonly Entry[], help = false): Found {
  const argv = inOwnNames(typed, entries)
  const end = argv.findIndex(word => word.startsWith('-'))
  const words = end < 0 ? argv : argv.slice(0, end)
  for (let length = words.length; length > 0; length--) {
    const path = words.slice(0, length).join(' ')
    const rest = argv.slice(length)
    const entry = entries.find(entry => entry.path === path)
    const isGroup = entries.some(other => other.path.startsWith(`${path} `))
    // A word behind a command that takes none is the mistyped name of another: `logs` and `logs events`.
    const isMistyped = isGroup && length < words.length && entry?.args.length === 0
    if (entry && !isMistyped) return { is: 'command', entry, rest }
    if (!isGroup) continue
    if (length < words.length) return unknown(words.slice(0, length + 1), words.slice(length + 1), entries)
    const list = length > 1 && !help ? entries.find(entry => entry.path === `${path} list`) : undefined
    return list ? { is: 'command', entry: list, rest } : { is: 'group', name: path, rest }
  }
  return words.length === 0
    ? { is: 'group', name: '', rest: argv }
    : unknown(words.slice(0, 1), words.slice(1), entries)
}

/** `typed` ends with the word that nothing is called; `rest` follows it. */
function unknown(typed: readonly string[], rest: readonly string[], entries: readonly Entry[]): Found {
  const before = typed.slice(0, -1)
  const [text, group] = [typed.join(' '), before.join(' ')]
  const word = typed.at(-1) as string
  const paths = entries.map(({ path }) => path.split(' ')).filter(path => before.every((name, i) => path[i] === name))
  const beside = paths.flatMap(path => path[before.length] ?? [])
  // A synonym before a likeness: `uninstall` is nearest to `install`, and means the opposite.
  const meant = synonyms.find(words => words.includes(word))?.filter(name => beside.includes(name)) ?? []
  const near = meant.length > 0 ? meant : nearest(word, [...new Set(beside)])
  const alike = near.map(name => longest([...before, name, ...rest], entries))
  if (alike.length > 0) return { is: 'unknown', text, group, alike }
  // The right word in the wrong place: `svc jobs` for `svc automation jobs`.
  const within = paths.flatMap(path => {
    const at = path.findIndex(other => nearest(word, [other]).length > 0)
    return at < 0 ? [] : [path.slice(0, at + 1).join(' ')]
  })
  return { is: 'unknown', text, group, alike: [...new Set(within)].slice(0, 3) }
}

/** As many of the words as are the path of a command or a group. */
function longest(words: readonly string[], entries: readonly Entry[]): string {
  const paths = words.map((_, i) => words.slice(0, i + 1).join(' '))
  return paths.findLast(path => entries.some(entry => `${entry.path} `.startsWith(`${path} `))) ?? ''
}
