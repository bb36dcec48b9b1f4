import { nearest } from '../../kernel/kit/text.js'
import type { LocalCommand } from '../local.js'
import type { ModuleCommand, RouteCommand } from './command-data.js'

/** Any command: generated from a route, hand-written in a plugin, or local to the CLI. */
export type Entry = RouteCommand | ModuleCommand | LocalCommand

/** The result of a search for a command. */
export type Found =
  | { readonly is: 'command'; readonly entry: Entry; readonly rest: readonly string[] }
  | { readonly is: 'group'; readonly name: string; readonly rest: readonly string[] }
  | { readonly is: 'unknown'; readonly text: string; readonly group: string; readonly alike: readonly string[] }

/** Synonyms of verbs; the help of a group shows which ones it has. */
const synonyms: readonly (readonly string[])[] = [
  ['show', 'info', 'get', 'inspect', 'view', 'describe'],
  ['list', 'ls'],
  ['remove', 'delete', 'rm', 'uninstall'],
  ['add', 'new', 'create', 'init', 'install'],
]

/** Subgroups that can be used without their group, in the singular. */
export const groups: ReadonlyMap<string, string> = new Map([
  ['job', 'automation jobs'],
  ['trigger', 'automation triggers'],
])

/** Common verbs, with the names that some groups use for them. */
const verbs: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    show: ['info', 'get', 'inspect', 'lookup', 'status'],
    create: ['new', 'add', 'put', 'register', 'activate', 'propose', 'open', 'init', 'install'],
    update: ['edit', 'rename', 'set', 'put', 'write'],
    delete: ['remove', 'unset', 'reset', 'deactivate'],
    resume: ['enable'],
    pause: ['disable'],
  }),
)

/**
 * The words with their canonical command names: groups in plural or singular, subgroups by their own name (`jobs list` is
 * `automation jobs list`), and the verbs of `docs/cli.md` where a group has such a command under another name (`session show` is
 * `session info`). An exact name always takes precedence.
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

/** The word in the other grammatical number: `session` for `sessions` and vice versa. */
function numbersOf(word: string): string[] {
  return word.endsWith('s') ? [word.slice(0, -1)] : [`${word}s`]
}

/**
 * The command with the longest path at the start of the arguments. A subgroup means its `list` (`automation jobs` is short for
 * `automation jobs list`), except in help, which covers the whole group.
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
    // An extra word after a command without arguments is a mistyped subcommand: `logs` and `logs events`.
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

/** `typed` ends with the unknown word; `rest` follows it. */
function unknown(typed: readonly string[], rest: readonly string[], entries: readonly Entry[]): Found {
  const before = typed.slice(0, -1)
  const [text, group] = [typed.join(' '), before.join(' ')]
  const word = typed.at(-1) as string
  const paths = entries.map(({ path }) => path.split(' ')).filter(path => before.every((name, i) => path[i] === name))
  const siblings = paths.flatMap(path => path[before.length] ?? [])
  // Synonyms precede similar spellings: `uninstall` is similar to `install`, but means the opposite.
  const meant = synonyms.find(words => words.includes(word))?.filter(name => siblings.includes(name)) ?? []
  const near = meant.length > 0 ? meant : nearest(word, [...new Set(siblings)])
  const alike = near.map(name => longest([...before, name, ...rest], entries))
  if (alike.length > 0) return { is: 'unknown', text, group, alike }
  // A correct word in the wrong place: `svc jobs` for `svc automation jobs`.
  const within = paths.flatMap(path => {
    const at = path.findIndex(other => nearest(word, [other]).length > 0)
    return at < 0 ? [] : [path.slice(0, at + 1).join(' ')]
  })
  return { is: 'unknown', text, group, alike: [...new Set(within)].slice(0, 3) }
}

/** The longest prefix of the words that is the path of a command or a group. */
function longest(words: readonly string[], entries: readonly Entry[]): string {
  const paths = words.map((_, i) => words.slice(0, i + 1).join(' '))
  return paths.findLast(path => entries.some(entry => `${entry.path} `.startsWith(`${path} `))) ?? ''
}
