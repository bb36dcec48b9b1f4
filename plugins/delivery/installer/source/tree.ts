import { createHash } from 'node:crypto'
import { refused } from '../errors.js'
import { limits } from './limits.js'

/** A file of an extension. All are regular; folders exist only as parents of files. */
export interface TreeFile {
  /** Relative, parts joined by `/`. */
  readonly path: string
  readonly executable: boolean
  readonly bytes: Uint8Array
}

/** All checked files of an extension, by path. */
export type Tree = readonly TreeFile[]

/** Collects a tree and checks every path before anything is written; a refusal throws. */
export class TreeBuilder {
  readonly #files: TreeFile[] = []
  /** First spelling of each file and folder path, keyed by its case-folded and normalized form. */
  readonly #names = new Map<string, { readonly path: string; readonly file: boolean }>()
  #bytes = 0

  /** Reserves the name of a folder; folders do not count towards the limits. */
  folder(path: string): void {
    const parts = partsOf(path)
    if (parts.length > limits.depth)
      throw refused('too_deep', `it is nested in more than ${limits.depth} folders`, path)
    this.#claim(parts, false)
  }

  /** Checks a file's path and size before its bytes are read. */
  expect(path: string, size: number): void {
    const parts = partsOf(path)
    if (parts.length === 0) throw refused('odd_name', 'a file has a name', path)
    if (parts.length > limits.depth + 1)
      throw refused('too_deep', `it is nested in more than ${limits.depth} folders`, path)
    this.#claim(parts, true)
    this.#bytes += size
    if (this.#bytes > limits.treeBytes) throw refused('too_large', `more than ${limits.treeBytes} bytes in all`, path)
  }

  /** Adds a file after {@link expect} accepted its path. */
  add(path: string, executable: boolean, bytes: Uint8Array): void {
    this.#files.push({ path: partsOf(path).join('/'), executable, bytes })
  }

  /** The tree; a single top folder, as release archives have, is stripped. */
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
        throw refused(
          'name_collision',
          `some file systems treat it as the same name as ${JSON.stringify(known.path)}`,
          path,
        )
      } else if (known.file || isFile) throw refused('duplicate', 'it is there twice', path)
    }
  }
}

/** SHA-256, hex, of paths, modes and bytes: independent of the source. */
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

/** The parts of a path below the root, safe on all systems; a path that could lead elsewhere is refused. */
export function partsOf(path: string): string[] {
  if (path.includes('\\')) throw refused('backslash', 'some systems treat a backslash as a separator', path)
  if (path.startsWith('/')) throw refused('absolute_path', 'a path must be relative', path)
  if (Buffer.byteLength(path) > limits.pathBytes)
    throw refused('too_long', `a path has at most ${limits.pathBytes} bytes`, path)
  const parts = path.split('/').filter(part => part !== '' && part !== '.')
  for (const part of parts) judgeName(part, path)
  return parts
}

function judgeName(name: string, path: string): void {
  // Checked for each part: `./C:` begins with a drive as well.
  if (/^[A-Za-z]:/.test(name)) throw refused('drive_letter', 'a name must not begin with a drive', path)
  if (name === '..') throw refused('parent_path', 'a path must not lead upwards', path)
  if (Buffer.byteLength(name) > limits.nameBytes)
    throw refused('too_long', `a name has at most ${limits.nameBytes} bytes`, path)
  // Control and format characters, unpaired surrogates and undecodable bytes disguise names.
  if (/[\p{Cc}\p{Cf}\p{Cs}\uFFFD]/u.test(name)) throw refused('odd_name', 'a name has an invisible character', path)
  if (folded(name) === '.git') throw refused('git_settings', 'git runs files in such a folder', path)
  if (/[. ]$/.test(name)) throw refused('odd_name', 'some systems drop a dot or a space at the end of a name', path)
}

/** A path as a case-insensitive and Unicode-normalizing file system compares it. */
function folded(path: string): string {
  return path.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC')
}

function compare(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
