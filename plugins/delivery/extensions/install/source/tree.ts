import { createHash } from 'node:crypto'
import { refused } from '../errors.js'
import { limits } from './limits.js'

/** One file of an extension. There are no others than plain ones; folders are there where files lie in them. */
export interface TreeFile {
  /** Relative, parts joined by `/`. */
  readonly path: string
  readonly executable: boolean
  readonly bytes: Uint8Array
}

/** All that an extension consists of, judged, by path. */
export type Tree = readonly TreeFile[]

/** Collects a tree and judges every path before anything of it is written; each refusal throws. */
export class TreeBuilder {
  readonly #files: TreeFile[] = []
  /** How each path, of files and of folders, was first written, by what a file system may take for the same. */
  readonly #names = new Map<string, { readonly path: string; readonly file: boolean }>()
  #bytes = 0

  /** A folder: it claims its name, and counts nothing. */
  folder(path: string): void {
    const parts = partsOf(path)
    if (parts.length > limits.depth) throw refused('too_deep', `it lies in more than ${limits.depth} folders`, path)
    this.#claim(parts, false)
  }

  /** Judges a file by what is known before its bytes are read. */
  expect(path: string, size: number): void {
    const parts = partsOf(path)
    if (parts.length === 0) throw refused('odd_name', 'a file has a name', path)
    if (parts.length > limits.depth + 1) throw refused('too_deep', `it lies in more than ${limits.depth} folders`, path)
    this.#claim(parts, true)
    this.#bytes += size
    if (this.#bytes > limits.treeBytes) throw refused('too_large', `more than ${limits.treeBytes} bytes in all`, path)
  }

  /** A file; its path was {@link expect}ed. */
  add(path: string, executable: boolean, bytes: Uint8Array): void {
    this.#files.push({ path: partsOf(path).join('/'), executable, bytes })
  }

  /** The tree; a single folder around everything is taken off, as archives of releases have one. */
  build(isRoot: (path: string) => boolean): Tree {
    if (this.#files.length === 0) throw refused('empty', 'there is no file in it')
    const [top = ''] = this.#files[0]?.path.split('/') ?? []
    const wrapped =
      !this.#files.some(file => isRoot(file.path)) && this.#files.every(file => file.path.startsWith(`${top}/`))
    const files = wrapped
      ? this.#files.map(file => ({ ...file, path: file.path.slice(top.length + 1) }))
      : [...this.#files]
    return files.sort((a, b) => compare(a.path, b.path))
  }

  #claim(parts: readonly string[], file: boolean): void {
    for (let depth = 1; depth <= parts.length; depth++) {
      const path = parts.slice(0, depth).join('/')
      const isFile = file && depth === parts.length
      const known = this.#names.get(folded(path))
      if (known === undefined) {
        if (this.#names.size >= limits.files) throw refused('too_many', `more than ${limits.files} names`, path)
        this.#names.set(folded(path), { path, file: isFile })
      } else if (known.path !== path) {
        throw refused('name_collision', `some file systems take it for ${JSON.stringify(known.path)}`, path)
      } else if (known.file || isFile) throw refused('duplicate', 'it is there twice', path)
    }
  }
}

/** SHA-256, hex, of paths, modes and bytes: the same for the same files wherever they came from. */
export function treeDigest(tree: Tree): string {
  const hash = createHash('sha256')
  for (const { path, executable, bytes } of [...tree].sort((a, b) => compare(a.path, b.path))) {
    hash.update(`${executable ? 'x' : '-'} ${sha256(bytes)} ${path}\0`)
  }
  return hash.digest('hex')
}

/** SHA-256, hex. */
export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** The parts of a path that leads to a place below, whatever system reads it; what could lead elsewhere is refused. */
export function partsOf(path: string): string[] {
  if (path.includes('\\')) throw refused('backslash', 'some systems take a backslash for a separator', path)
  if (path.startsWith('/')) throw refused('absolute_path', 'a path must be relative', path)
  if (Buffer.byteLength(path) > limits.pathBytes)
    throw refused('too_long', `a path has at most ${limits.pathBytes} bytes`, path)
  const parts = path.split('/').filter(part => part !== '' && part !== '.')
  for (const part of parts) judgeName(part, path)
  return parts
}

function judgeName(name: string, path: string): void {
  // Of every part: `./C:` begins with one as well, and so does what is read of a folder.
  if (/^[A-Za-z]:/.test(name)) throw refused('drive_letter', 'a name must not begin with a drive', path)
  if (name === '..') throw refused('parent_path', 'a path must not lead upwards', path)
  if (Buffer.byteLength(name) > limits.nameBytes)
    throw refused('too_long', `a name has at most ${limits.nameBytes} bytes`, path)
  // Control and format characters, unpaired surrogates and what did not decode: names that do not look like what they are.
  if (/[\p{Cc}\p{Cf}\p{Cs}\uFFFD]/u.test(name))
    throw refused('odd_name', 'a name has a character that is not shown', path)
  if (folded(name) === '.git') throw refused('git_settings', 'git runs what it finds in such a folder', path)
  if (/[. ]$/.test(name)) throw refused('odd_name', 'some systems drop a dot or a space at the end of a name', path)
}

/** What a file system that knows neither case nor forms of Unicode makes of a path. */
function folded(path: string): string {
  return path.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC')
}

function compare(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
