import { createHash } from 'node:crypto'
import { lstat, readdir } from 'node:fs/promises'
import path from 'node:path'
import * as v from 'valibot'
import { readRegularFile } from '../../../kernel/kit/read-file.js'

/** File beside an installed SKILL.md with its origin and the hash of its files. */
export const META_FILE = '.svc-meta.json'

/** Limits of an installed skill. */
export const TREE_LIMITS = { files: 256, bytes: 16 * 1024 * 1024, depth: 8, metaBytes: 64 * 1024 } as const

const text = (max: number) => v.pipe(v.string(), v.maxLength(max))

export const SkillMeta = v.object({
  name: text(128),
  slug: text(256),
  registry: text(256),
  version: v.optional(text(64)),
  /** `sha256:` and hex: {@link hashTree}. */
  hash: v.pipe(v.string(), v.regex(/^sha256:[0-9a-f]{64}$/, 'sha256: and 64 hex digits')),
  installed_at: text(64),
  author: v.optional(text(256)),
  /** Author's Ed25519 key at the first installation, required for every later one. */
  public_key: v.optional(text(256)),
})
export type SkillMeta = v.InferOutput<typeof SkillMeta>

/** A file of an installed skill: its path with `/`, and a stamp that changes with it. */
interface Entry {
  readonly path: string
  readonly stamp: string
}

/** Why the files of a skill are not read. */
export class TreeError extends Error {}

/** Origin of an installed skill; undefined without the file. Throws an Error with the problem. */
export async function readMeta(folder: string): Promise<SkillMeta | undefined> {
  const bytes = await readRegularFile(path.join(folder, META_FILE), {
    maxBytes: TREE_LIMITS.metaBytes,
    links: 'refuse',
  })
  if (!bytes) return undefined
  return v.parse(SkillMeta, JSON.parse(bytes.toString('utf8')))
}

/** The files of a skill without content. @throws TreeError for links, devices, and content over the limits */
export async function listTree(folder: string): Promise<readonly Entry[]> {
  const entries: Entry[] = []
  let bytes = 0
  const walk = async (relative: string, depth: number): Promise<void> => {
    if (depth > TREE_LIMITS.depth) throw new TreeError(`its folders are nested more than ${TREE_LIMITS.depth} deep`)
    const names = await readdir(path.join(folder, relative))
    for (const name of names.sort()) {
      const at = relative === '' ? name : `${relative}/${name}`
      if (at === META_FILE) continue
      const found = await lstat(path.join(folder, at))
      const { dev, ino, size, mtimeMs, ctimeMs, mode } = found
      if (found.isDirectory()) await walk(at, depth + 1)
      else if (!found.isFile()) throw new TreeError(`${at} is neither a regular file nor a folder`)
      else entries.push({ path: at, stamp: [dev, ino, size, mtimeMs, ctimeMs, mode & 0o100].join(':') })
      bytes += size
      if (entries.length > TREE_LIMITS.files) throw new TreeError(`it has more than ${TREE_LIMITS.files} files`)
      if (bytes > TREE_LIMITS.bytes) throw new TreeError(`it has more than ${TREE_LIMITS.bytes} bytes`)
    }
  }
  await walk('', 0)
  return entries
}

/** Changes whenever a file of the tree does. */
export const stampOfTree = (entries: readonly Entry[]) =>
  entries.map(({ path, stamp }) => `${path} ${stamp}`).join('\n')

/** `sha256:` and hex over paths and contents; `onFile` is called with every file. @throws TreeError */
export async function hashTree(
  folder: string,
  entries: readonly Entry[],
  onFile: (path: string, bytes: Buffer) => void = () => {},
): Promise<string> {
  const files: { path: string; bytes: Uint8Array }[] = []
  for (const { path: at } of entries) {
    const file = path.join(folder, at)
    const bytes = await readRegularFile(file, { maxBytes: TREE_LIMITS.bytes, links: 'refuse' })
    if (!bytes) throw new TreeError(`${at} was removed while it was read`)
    onFile(at, bytes)
    files.push({ path: at, bytes })
  }
  return hashFiles(files)
}

/** As {@link hashTree}, for files in memory. */
export function hashFiles(files: readonly { readonly path: string; readonly bytes: Uint8Array }[]): string {
  const hash = createHash('sha256')
  const byPath = [...files].sort((a, b) => (a.path < b.path ? -1 : 1))
  // The length separates entries unambiguously, so no two lists of files have the same input.
  for (const { path: at, bytes } of byPath) hash.update(`${JSON.stringify([at, bytes.length])}\n`).update(bytes)
  return `sha256:${hash.digest('hex')}`
}
