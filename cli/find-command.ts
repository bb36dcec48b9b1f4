import type { ModuleCommand, RouteCommand } from './command-data.js'
import type { LocalCommand } from './local.js'

/** Any command: made from a route, written by hand in a plugin, or part of the command line itself. */
export type Entry = RouteCommand | ModuleCommand | LocalCommand

/** What a command line names. */
export type Found =
  | { readonly is: 'command'; readonly entry: Entry; readonly rest: readonly string[] }
  | { readonly is: 'group'; readonly name: string; readonly rest: readonly string[] }
  | { readonly is: 'unknown'; readonly text: string; readonly alike: readonly string[] }

/**
 * The command with the longest path that the arguments begin with. A group within a group stands for its `list`:
 * `automation jobs` is `automation jobs list`.
 */
export function findCommand(argv: readonly string[], entries: readonly Entry[]): Found {
  const end = argv.findIndex(word => word.startsWith('-'))
  const words = end < 0 ? argv : argv.slice(0, end)
  for (let length = words.length; length > 0; length--) {
    const path = words.slice(0, length).join(' ')
    const rest = argv.slice(length)
    const entry = entries.find(entry => entry.path === path)
    if (entry) return { is: 'command', entry, rest }
    if (!entries.some(other => other.path.startsWith(`${path} `))) continue
    if (length < words.length) return unknown(words.slice(0, length + 1).join(' '), entries)
    const list = length > 1 ? entries.find(entry => entry.path === `${path} list`) : undefined
    return list ? { is: 'command', entry: list, rest } : { is: 'group', name: path, rest }
  }
  return words.length === 0 ? { is: 'group', name: '', rest: argv } : unknown(words[0] as string, entries)
}

function unknown(text: string, entries: readonly Entry[]): Found {
  const depth = text.split(' ').length
  const names = new Set(entries.map(entry => entry.path.split(' ').slice(0, depth).join(' ')))
  const near = [...names].map(name => ({ name, distance: editDistance(text, name) }))
  const alike = near
    .filter(({ distance }) => distance <= Math.max(1, Math.floor(text.length / 4)))
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
  return { is: 'unknown', text, alike: alike.slice(0, 3).map(({ name }) => name) }
}

function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (above[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(change, (above[j] as number) + 1, (row[j - 1] as number) + 1))
    }
    above = row
  }
  return above[b.length] as number
}
