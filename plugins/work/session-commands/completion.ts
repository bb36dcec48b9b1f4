import { opendir } from 'node:fs/promises'
import path from 'node:path'
import type { ListCommandsReply } from '../../../schemas/sessions.js'
import type { Conversation } from './conversation.js'
import { SLASH } from './keys.js'
import { oneLine } from './one-line.js'
import type { TaskContext } from './task-context.js'

/** Entries read per folder, and in all. */
const MAX_ENTRIES = 5000
const MAX_WALKED = 20_000
/** Maximum number of listed candidates. */
const MAX_LISTED = 20
/** Folders that are searched only when they are named. */
const SKIPPED: ReadonlySet<string> = new Set(['node_modules', 'vendor', 'target', 'dist'])

interface Followed {
  readonly base: string
  /** Folder of the session. */
  readonly root: string
  readonly talk: Conversation
  readonly id: string
}

/** Completes the text before the cursor: `@file` below the folder of the session, or `/command`. */
export function completer({ client }: TaskContext, { base, root, talk }: Followed) {
  const candidatesOf = async (before: string): Promise<{ typed: string; found: readonly string[] } | undefined> => {
    const [, command] = /^(\/\S*)$/.exec(before) ?? []
    if (command !== undefined) {
      const { commands } = (await client.request('GET', `${base}/commands`)) as ListCommandsReply
      const names = [...SLASH.map(([name]) => name.replace(/ .*/, '')), ...commands.map(one => one.canonical_token)]
      return { typed: command, found: names.filter(name => name.startsWith(command)) }
    }
    const [, file] = /(?:^|\s)@(\S*)$/.exec(before) ?? []
    return file === undefined ? undefined : { typed: file, found: await filesFor(root, file) }
  }
  return async (before: string): Promise<string | undefined> => {
    const { typed, found } = (await candidatesOf(before)) ?? { typed: '', found: [] }
    const names = [...new Set(found)].filter(name => name === oneLine(name)).sort()
    const [only, another] = names
    if (only === undefined) return undefined
    const head = before.slice(0, before.length - typed.length)
    if (another === undefined) return `${head}${only}${only.endsWith('/') ? '' : ' '}`
    const common = commonStart(names)
    if (common.length > typed.length && common.startsWith(typed)) return head + common
    for (const name of names.slice(0, MAX_LISTED)) talk.say(`  ${name}`)
    if (names.length > MAX_LISTED) talk.say(`  … ${names.length - MAX_LISTED} more`)
    return undefined
  }
}

/** Files and folders with the typed prefix; without a match, those in any folder whose name contains the text. */
async function filesFor(root: string, typed: string): Promise<string[]> {
  const slash = typed.lastIndexOf('/') + 1
  const [folder, begin] = [typed.slice(0, slash), typed.slice(slash)]
  const base = path.resolve(root, folder)
  if (path.relative(root, base).startsWith('..')) return []
  const found: string[] = []
  for await (const { name, isFolder } of entriesOf(base, { left: MAX_ENTRIES })) {
    if (!name.startsWith(begin) || (name.startsWith('.') && !begin.startsWith('.'))) continue
    if (isWord(name)) found.push(`${folder}${name}${isFolder ? '/' : ''}`)
  }
  if (found.length > 0 || folder !== '' || begin.length < 2) return found
  const budget = { left: MAX_WALKED }
  const walk = async (at: string): Promise<void> => {
    const folders: string[] = []
    for await (const { name, isFolder } of entriesOf(path.join(root, at), budget)) {
      if (name.startsWith('.') || SKIPPED.has(name) || !isWord(name)) continue
      const file = `${at}${name}`
      if (isFolder) folders.push(`${file}/`)
      else if (name.toLowerCase().includes(begin.toLowerCase())) found.push(file)
    }
    for (const next of folders) if (budget.left > 0) await walk(next)
  }
  await walk('')
  return found
}

/** A name without blanks and control characters, which a prompt can contain as one word. */
const isWord = (name: string) => !/[\s\p{C}]/u.test(name)

async function* entriesOf(folder: string, budget: { left: number }) {
  // A missing or unreadable folder has no entries.
  const opened = await opendir(folder).catch(() => undefined)
  if (!opened) return
  for await (const entry of opened) {
    if (budget.left-- <= 0) return
    yield { name: entry.name, isFolder: entry.isDirectory() }
  }
}

function commonStart(names: readonly string[]): string {
  const [first = '', ...others] = names
  let length = first.length
  for (const name of others) while (!name.startsWith(first.slice(0, length))) length--
  return first.slice(0, length)
}
