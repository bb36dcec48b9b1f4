import { posix } from 'node:path'
import { type IgnoreRule, ignores, parseIgnore } from './gitignore.js'
import { languageOf } from './languages.js'

/** What one inspection may cost at most. Sizes in bytes. */
export const LIMITS = {
  depth: 16,
  files: 20_000,
  entriesPerDirectory: 10_000,
  filesRead: 400,
  fileSize: 256 * 1024,
  ignoreFileSize: 64 * 1024,
  ignoreRules: 1_000,
  notes: 200,
  noteLength: 160,
  largest: 10,
} as const

/** One name in a directory. Links and special files are never listed. */
export interface DirectoryEntry {
  readonly name: string
  readonly kind: 'file' | 'directory'
  /** Bytes; 0 for a directory. */
  readonly size: number
}

/** How the workspace is looked at. Paths are relative to it, with `/`; '' is the workspace itself. */
export interface Readers {
  list(directory: string): Promise<DirectoryEntry[]>
  read(path: string): Promise<string>
}

export interface FoundFile {
  readonly path: string
  readonly size: number
  readonly language: string | undefined
}

export interface Tree {
  /** In code-unit order of the path. */
  readonly files: readonly FoundFile[]
  /** Directories that could not be listed or were too large or too deep, in code-unit order. */
  readonly unlisted: readonly string[]
  /** Whether the walk ended at `LIMITS.files`. */
  readonly truncated: boolean
}

/** A TODO or FIXME: where it stands and the line from the marker on. */
export interface Note {
  readonly path: string
  readonly line: number
  readonly text: string
}

export interface TextCount {
  readonly lines: number
  readonly noteCount: number
  /** The first `LIMITS.notes` of them. */
  readonly notes: readonly Note[]
}

/** Totals of one language. `unread` files are in `files`, but their lines are not in `lines`. */
export interface LanguageTotal {
  readonly name: string
  readonly files: number
  readonly lines: number
  readonly unread: number
}

export interface Inspection {
  readonly files: number
  /** Directories that hold at least one of the files. */
  readonly directories: number
  readonly bytes: number
  readonly read: number
  readonly lines: number
  /** By lines, then files, both falling, then name. */
  readonly languages: readonly LanguageTotal[]
  /** Files of no known language. */
  readonly otherFiles: number
  readonly noteCount: number
  readonly notes: readonly Note[]
  readonly largest: readonly FoundFile[]
  readonly unlisted: readonly string[]
  readonly truncated: boolean
}

const SKIPPED_DIRECTORIES: ReadonlySet<string> = new Set(['.git', '.svc', 'dist', 'node_modules'])

/** Code-unit order: the same on every machine, whatever its locale. */
export function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0
}

/**
 * Finds the files below the workspace, directory by directory in code-unit order, so that a limit always cuts at the
 * same place. `excluded` holds paths of files and directories to pass over. Rejects when the workspace itself cannot be
 * listed, and with the signal's reason when that aborts.
 */
export async function walk(readers: Readers, excluded: ReadonlySet<string>, signal: AbortSignal): Promise<Tree> {
  const files: FoundFile[] = []
  const unlisted: string[] = []
  let truncated = false

  const visit = async (directory: string, depth: number, inherited: readonly IgnoreRule[]): Promise<void> => {
    signal.throwIfAborted()
    const entries = depth > LIMITS.depth ? undefined : await listed(readers, directory, signal)
    if (!entries || entries.length > LIMITS.entriesPerDirectory) {
      unlisted.push(directory)
      return
    }
    const rules = await withOwnRules(readers, directory, entries, inherited, signal)
    for (const entry of entries.toSorted((a, b) => compare(a.name, b.name))) {
      const path = posix.join(directory, entry.name)
      const isDirectory = entry.kind === 'directory'
      if (excluded.has(path) || entry.name === '.git' || (isDirectory && SKIPPED_DIRECTORIES.has(entry.name))) continue
      if (ignores(rules, path, isDirectory)) continue
      if (files.length >= LIMITS.files) {
        truncated = true
        return
      }
      if (isDirectory) await visit(path, depth + 1, rules)
      else files.push({ path, size: entry.size, language: languageOf(path) })
    }
  }

  await visit('', 0, [])
  files.sort((a, b) => compare(a.path, b.path))
  return { files, unlisted: unlisted.sort(), truncated }
}

/** The files worth reading, at most `LIMITS.filesRead`, grouped by directory: one group is one step of the turn. */
export function planReading(files: readonly FoundFile[]): { directory: string; files: FoundFile[] }[] {
  const readable = files.filter(file => file.language !== undefined && file.size <= LIMITS.fileSize)
  const byDirectory = new Map<string, FoundFile[]>()
  for (const file of readable.slice(0, LIMITS.filesRead)) {
    const directory = posix.dirname(file.path)
    byDirectory.set(directory, [...(byDirectory.get(directory) ?? []), file])
  }
  return [...byDirectory].map(([directory, group]) => ({ directory, files: group }))
}

/** Only directories with files count, so that an empty one that an earlier report left behind changes nothing. */
export function countDirectories(files: readonly FoundFile[]): number {
  return new Set(files.map(file => posix.dirname(file.path))).size
}

/** Counts the lines of a text and finds its TODO and FIXME notes; undefined when it is not text. */
export function countText(path: string, content: string): TextCount | undefined {
  if (content.includes('\0')) return undefined
  const lines = content.split('\n')
  if (lines.at(-1) === '') lines.pop()
  const notes: Note[] = []
  let noteCount = 0
  for (const [index, line] of lines.entries()) {
    const start = line.search(/\b(?:TODO|FIXME)\b/)
    if (start === -1) continue
    noteCount++
    if (notes.length < LIMITS.notes) notes.push({ path, line: index + 1, text: noteText(line.slice(start)) })
  }
  return { lines: lines.length, noteCount, notes }
}

/** Adds everything up. `counts` has an entry for each file that was read as text. */
export function summarize(tree: Tree, counts: ReadonlyMap<string, TextCount>): Inspection {
  const languages = new Map<string, LanguageTotal>()
  for (const { path, language: name } of tree.files) {
    if (name === undefined) continue
    const count = counts.get(path)
    const total = languages.get(name) ?? { name, files: 0, lines: 0, unread: 0 }
    const lines = total.lines + (count?.lines ?? 0)
    languages.set(name, { name, files: total.files + 1, lines, unread: total.unread + (count ? 0 : 1) })
  }
  const texts = [...counts.values()]
  return {
    files: tree.files.length,
    directories: countDirectories(tree.files),
    bytes: sum(tree.files, file => file.size),
    read: counts.size,
    lines: sum(texts, text => text.lines),
    languages: [...languages.values()].sort(
      (a, b) => b.lines - a.lines || b.files - a.files || compare(a.name, b.name),
    ),
    otherFiles: tree.files.filter(file => file.language === undefined).length,
    noteCount: sum(texts, text => text.noteCount),
    notes: texts
      .flatMap(text => text.notes)
      .sort((a, b) => compare(a.path, b.path) || a.line - b.line)
      .slice(0, LIMITS.notes),
    largest: tree.files.toSorted((a, b) => b.size - a.size || compare(a.path, b.path)).slice(0, LIMITS.largest),
    unlisted: tree.unlisted,
    truncated: tree.truncated,
  }
}

async function listed(readers: Readers, directory: string, signal: AbortSignal): Promise<DirectoryEntry[] | undefined> {
  try {
    return await readers.list(directory)
  } catch (error) {
    if (directory === '' || signal.aborted) throw error
    return undefined
  }
}

async function withOwnRules(
  readers: Readers,
  directory: string,
  entries: readonly DirectoryEntry[],
  inherited: readonly IgnoreRule[],
  signal: AbortSignal,
): Promise<readonly IgnoreRule[]> {
  const own = entries.find(entry => entry.name === '.gitignore' && entry.kind === 'file')
  if (!own || own.size > LIMITS.ignoreFileSize) return inherited
  try {
    const rules = parseIgnore(await readers.read(posix.join(directory, '.gitignore')), directory)
    return [...inherited, ...rules].slice(0, LIMITS.ignoreRules)
  } catch (error) {
    if (signal.aborted) throw error
    return inherited
  }
}

function noteText(text: string): string {
  // Cut before the expression sees it: what it costs grows faster than the line.
  const plain = text
    .slice(0, 4 * LIMITS.noteLength)
    .trim()
    .replace(/(?:\*+\/|-->)$/, '')
    .trim()
  const characters = [...plain]
  return characters.length > LIMITS.noteLength ? `${characters.slice(0, LIMITS.noteLength).join('')}…` : plain
}

function sum<T>(items: readonly T[], amount: (item: T) => number): number {
  return items.reduce((total, item) => total + amount(item), 0)
}
