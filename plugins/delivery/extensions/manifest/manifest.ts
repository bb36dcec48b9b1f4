import * as v from 'valibot'
import { issueText } from '../../../../kernel/kit/issue-text.js'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import type { Fault } from '../../../../kernel/plugin.js'
import { ExtensionErrors } from '../errors.js'
import { Manifest } from './schema.js'
import { type ManifestSource, readSource } from './source.js'

export * from './schema.js'
export { isAtLeast, isNewer } from './versions.js'

/** File names of a manifest; the first existing one is used. */
export const manifestFileNames = ['extension.toml', 'extension.json'] as const
/** Bytes of a manifest; a larger one is refused unread. */
export const MAX_MANIFEST_BYTES = 256 * 1024
/** A manifest with the path and text of its file. */
export interface ManifestFile {
  readonly manifest: Manifest
  readonly path: string
  readonly text: string
}

/** Reads one file; undefined when there is none. */
export type ReadFile = (path: string) => Promise<string | Uint8Array | undefined>

/** Reads files of this machine. @throws Fault `file_not_regular`, `file_too_large`, `file_unreadable` */
const onDisk: ReadFile = path => readRegularFile(path, { maxBytes: MAX_MANIFEST_BYTES })

/**
 * Reads and checks the manifest of a folder, `extension.toml` before `extension.json`; the empty folder is left out of paths.
 * @throws Fault `extension_manifest_missing`, `extension_manifest_invalid` with file, line and key
 */
export async function readManifestFile(folder: string, readFile: ReadFile = onDisk): Promise<ManifestFile> {
  for (const name of manifestFileNames) {
    const path = folder === '' ? name : `${folder}/${name}`
    const found = await readFile(path)
    if (found === undefined) continue
    const text = decode(found, path)
    return { manifest: parseManifest(text, path), path, text }
  }
  throw ExtensionErrors.extension_manifest_missing(`${folder} has no ${manifestFileNames.join(' and no ')}`)
}

/** Like {@link readManifestFile}, the manifest alone. */
export async function readManifest(folder: string, readFile: ReadFile = onDisk): Promise<Manifest> {
  return (await readManifestFile(folder, readFile)).manifest
}

/** Lists and tables whose entries are checked one by one. */
const ENTRIES = [['tools'], ['resources', 'hooks'], ['resources', 'mcp_servers']] as const

/**
 * Parses the text of a manifest; `path` ends in `.toml` or `.json`. An invalid tool, hook or MCP server is left out and
 * named in `leftOut`; an invalid required hook fails the manifest, because it guards something.
 * @throws Fault `extension_manifest_invalid`
 */
export function parseManifest(text: string, path: string): Manifest {
  const source = readSource(text.replace(/^\uFEFF/, ''), path)
  const value = structuredClone(hoist(source))
  const leftOut: string[] = []
  /** Original indexes of entries by list, because a left-out entry shifts those after it. */
  const places = new Map<string, number[]>()
  for (;;) {
    const decoded = v.safeParse(Manifest, value)
    if (decoded.success) return leftOut.length > 0 ? { ...decoded.output, leftOut } : decoded.output
    const bad = new Map<string, { readonly list: readonly string[]; readonly key: string; readonly fault: Fault }>()
    for (const issue of decoded.issues) {
      const keys = issue.path?.map(({ key }) => String(key)) ?? []
      const list = ENTRIES.find(one => keys.length > one.length && one.every((name, at) => keys[at] === name))
      const key = keys[list?.length ?? 0] ?? ''
      const entry = list && at(value, [...list, key])
      const fault = source.fault(list ? asInFile(keys, list, places) : keys, issueText(issue))
      if (!list || Object(entry).required === true) throw fault
      const id = [...list, key].join('.')
      if (!bad.has(id)) bad.set(id, { list, key, fault })
    }
    for (const { fault } of bad.values()) leftOut.push(fault.message)
    // Backwards, so that the indexes of the others stay valid.
    for (const { list, key } of [...bad.values()].reverse()) {
      const held = at(value, list) as unknown[] | Record<string, unknown>
      if (!Array.isArray(held)) {
        delete held[key]
        continue
      }
      const own = places.get(list.join('.')) ?? [...held.keys()]
      held.splice(Number(key), 1)
      places.set(
        list.join('.'),
        own.filter((_, n) => n !== Number(key)),
      )
    }
  }
}

const at = (value: unknown, keys: readonly string[]): unknown =>
  keys.reduce<unknown>((held, key) => (Object(held) as Record<string, unknown>)[key], value)

function asInFile(keys: readonly string[], list: readonly string[], places: ReadonlyMap<string, number[]>): string[] {
  const index = places.get(list.join('.'))?.[Number(keys[list.length])]
  return keys.map((key, n) => (n === list.length && index !== undefined ? String(index) : key))
}

/** Core keys that may be in `[extension]` or at the root. */
export const CORE = [
  'name',
  'version',
  'description',
  'min_svc_version',
  'requires_env',
  'apiVersion',
  'main',
  'replaces',
]

function hoist(source: ManifestSource): Record<string, unknown> {
  const { extension, $schema, ...root } = source.value
  if ($schema !== undefined && typeof $schema !== 'string') throw source.fault(['$schema'], 'expected a text')
  if (extension === undefined) return root
  if (typeof extension !== 'object' || extension === null || Array.isArray(extension)) {
    throw source.fault(['extension'], 'expected a table')
  }
  for (const key of Object.keys(extension)) {
    if (!CORE.includes(key)) throw source.fault(['extension', key], 'unknown member')
    if (key in root) throw source.fault(['extension', key], 'it also occurs at the root; set it once')
  }
  return { ...root, ...extension }
}

function decode(found: string | Uint8Array, path: string): string {
  const bytes = typeof found === 'string' ? Buffer.from(found) : found
  const bad = (what: string) =>
    ExtensionErrors.extension_manifest_invalid(`${path}: ${what}`, { details: { file: path } })
  if (bytes.length > MAX_MANIFEST_BYTES) {
    throw bad(`it has ${bytes.length} bytes, at most ${MAX_MANIFEST_BYTES} are read`)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw bad('it is not valid UTF-8')
  }
}
