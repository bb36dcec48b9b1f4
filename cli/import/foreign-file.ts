import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { findNodeAtLocation, type Node, type ParseError } from 'jsonc-parser'
import { parse, TomlError } from 'smol-toml'
import { readRegularFile } from '../../kernel/kit/read-file.js'
import { clip, shown } from '../../kernel/kit/text.js'
import { membersOf, placeOf, plain, treeOf } from '../../plugins/platform/configuration/jsonc.js'
import { syntaxProblem } from '../../plugins/platform/configuration/syntax.js'

/** Maximum bytes of one file; a typical configuration has a hundredth of it. */
const MOST_BYTES = 4 * 1024 * 1024
/** Maximum number of files and folders scanned in one folder. */
const MOST_FILES = 2000
/** Folders that contain no configuration. */
const SKIPPED = new Set(['.git', 'node_modules', '__pycache__', '.DS_Store'])
/** Maximum depth of nested folders. */
const MOST_DEPTH = 4

/** A file of another program as text: without a byte order mark, line ends as `\n`. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

/** Error of an unreadable file or part of it; `line` from 1. */
export class ForeignFileError extends Error {
  constructor(
    message: string,
    readonly line = 0,
  ) {
    super(message)
  }
}

/** A path from the root of a document. */
export type MemberPath = readonly (string | number)[]

/** A document with the lines of its members. */
export interface Document {
  readonly value: unknown
  /** Line of a member, or of its nearest existing ancestor; from 1. */
  lineOf(path: MemberPath): number
  /** Duplicate names in one object with their lines: the last one counts. */
  readonly twice: readonly { readonly name: string; readonly line: number }[]
}

/**
 * The text of a file; undefined for a missing file.
 * @throws ForeignFileError for an irregular, too large, unreadable or non-UTF-8 file
 */
export async function readForeign(path: string): Promise<SourceFile | undefined> {
  try {
    const bytes = await readRegularFile(path, { maxBytes: MOST_BYTES })
    return bytes && sourceOf(path, bytes)
  } catch (error) {
    throw error instanceof ForeignFileError ? error : new ForeignFileError((error as Error).message)
  }
}

/** @throws ForeignFileError for bytes that are not text */
export function sourceOf(path: string, bytes: Uint8Array): SourceFile {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return { path, text: text.replace(/\r\n?/g, '\n') }
  } catch {
    throw new ForeignFileError('it is not valid UTF-8')
  }
}

/** Parses JSON with comments and trailing commas, as editors and people write it. @throws ForeignFileError with the line */
export function parseJsonFile({ text }: SourceFile): Document {
  const errors: ParseError[] = []
  let tree: Node | undefined
  try {
    tree = treeOf(text, errors)
    const broken = syntaxProblem(text, errors)
    if (broken) throw new ForeignFileError(`not valid JSON: ${broken.text}`, placeOf(text, broken.offset).line)
    if (!tree) return { value: undefined, lineOf: () => 1, twice: [] }
    const root = tree
    const lines = new Lines(text)
    return { value: plain(root), lineOf: path => lines.of(nearest(root, path).offset), twice: repeated(root, lines) }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new ForeignFileError('not valid JSON: it is nested too deeply')
  }
}

/** @throws ForeignFileError with the line */
export function parseTomlFile({ text }: SourceFile): Document {
  try {
    const value = parse(text)
    const lines = text.split('\n')
    return { value, twice: [], lineOf: path => lineOfToml(lines, path) }
  } catch (error) {
    if (error instanceof TomlError)
      throw new ForeignFileError(`not valid TOML: ${error.message.split('\n', 1)[0]}`, error.line)
    throw new ForeignFileError('not valid TOML: it is nested too deeply')
  }
}

/** Matching files below a folder, sorted by path; links are followed, and no folder is scanned twice. */
export async function filesBelow(
  folder: string,
  wanted: (name: string) => boolean,
  depth = MOST_DEPTH,
): Promise<string[]> {
  const found: string[] = []
  const visited = new Set<string>()
  let looked = 0
  const walk = async (at: string, left: number): Promise<void> => {
    const real = await realpath(at).catch(() => undefined)
    if (real === undefined || visited.has(real)) return
    visited.add(real)
    const entries = await readdir(at, { withFileTypes: true }).catch(() => [])
    for (const { name } of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (++looked > MOST_FILES) throw new ForeignFileError(`more than ${MOST_FILES} files below ${folder}`)
      if (SKIPPED.has(name)) continue
      const path = join(at, name)
      // Links are followed; a link loop cannot be resolved and is skipped.
      const about = await stat(path).catch(() => undefined)
      if (about?.isDirectory() && left > 0) await walk(path, left - 1)
      else if (about?.isFile() && wanted(name)) found.push(path)
    }
  }
  await walk(folder, depth)
  return found
}

/** An object of a document without its null members; undefined for any other value. */
export function objectOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null && member !== undefined))
}

/** The type of a value in words: `a number`, `a list`. */
export function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return `the text ${shown(value, 40)}`
  return typeof value === 'object' ? 'an object' : `the ${typeof value} ${clip(String(value), 40)}`
}

/** A text; numbers and booleans as they are written. Undefined for any other value. */
export function scalarText(value: unknown): string | undefined {
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined
}

/** Line numbers of offsets, without a scan of the text for each. */
class Lines {
  readonly #starts: number[] = [0]

  constructor(text: string) {
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) this.#starts.push(at + 1)
  }

  of(offset: number): number {
    let [low, high] = [0, this.#starts.length]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((this.#starts[middle] as number) <= offset) low = middle
      else high = middle
    }
    return low + 1
  }
}

/** The member at a path (its key, where it has one), or its nearest ancestor. */
function nearest(root: Node, path: MemberPath): Node {
  for (let length = path.length; length > 0; length--) {
    const node = findNodeAtLocation(root, path.slice(0, length) as (string | number)[])
    if (node) return node.parent?.type === 'property' ? node.parent : node
  }
  return root
}

function repeated(root: Node, lines: Lines): { name: string; line: number }[] {
  const twice: { name: string; line: number }[] = []
  const visit = (node: Node): void => {
    if (node.type === 'object') {
      const names = new Set<string>()
      for (const { key, node: member } of membersOf(node)) {
        if (names.has(key)) twice.push({ name: key, line: lines.of(member.offset) })
        names.add(key)
      }
    }
    for (const child of node.children ?? []) visit(child)
  }
  visit(root)
  return twice
}

/** The parser gives no positions: searches the line of a table header, or of a key in it. */
function lineOfToml(lines: readonly string[], path: MemberPath): number {
  const spelled = (part: string | number) => {
    const plainly = String(part).replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    return `(?:"${plainly}"|'${plainly}'|${plainly})`
  }
  for (let length = path.length; length > 0; length--) {
    const header = path.slice(0, length).map(spelled).join('\\s*\\.\\s*')
    const table = lines.findIndex(line => new RegExp(`^\\s*\\[\\[?\\s*${header}\\s*\\]`).test(line))
    if (table >= 0) return table + 1
    const key = lines.findIndex(line => new RegExp(`^\\s*${spelled(path[length - 1] as string)}\\s*=`).test(line))
    if (key >= 0 && length === path.length) return key + 1
  }
  return 1
}
