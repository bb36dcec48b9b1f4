import { realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { shown } from '../../../kernel/kit/text.js'
import { WorkspaceErrors } from './api.js'

/** Most characters of a path. */
const PATH_MAX = 4096
/** Most additional directories of one workspace. */
export const ADD_DIRS_MAX = 64

/** Returns a trimmed reference or path. Throws `workspace_invalid` for a text that no file system accepts. */
export function checkText(text: string, what: string): string {
  const trimmed = text.trim()
  if (trimmed === '') throw WorkspaceErrors.workspace_invalid(`${what} is empty`)
  if (trimmed.length > PATH_MAX) {
    throw WorkspaceErrors.workspace_invalid(`${what} has ${trimmed.length} characters, at most ${PATH_MAX} are allowed`)
  }
  if (trimmed.includes('\0')) throw WorkspaceErrors.workspace_invalid(`${what} contains a NUL character`)
  return trimmed
}

/** Returns a path without `.` and `..` parts. Throws `workspace_path_relative` unless it is absolute. */
export function checkAbsolute(text: string, what: string): string {
  const trimmed = checkText(text, what)
  if (path.isAbsolute(trimmed)) return path.resolve(trimmed)
  throw WorkspaceErrors.workspace_path_relative(`${what} must be an absolute path, got ${shown(trimmed)}`)
}

/** The directory at an absolute path, with symbolic links resolved. Throws `workspace_root_invalid`. */
export async function canonicalDirectory(text: string, what: string): Promise<string> {
  const wanted = checkAbsolute(text, what)
  const found = await directoryAt(wanted)
  if (found.is === 'directory') return found.real
  const why = found.is === 'other' ? 'is not a directory' : found.why
  throw WorkspaceErrors.workspace_root_invalid(`${what} ${shown(wanted)} ${why}`)
}

/** Additional directories: canonical, unique and without the root. Throws `workspace_root_invalid`, `workspace_invalid`. */
export async function canonicalDirectories(texts: readonly string[], root: string): Promise<string[]> {
  if (texts.length > ADD_DIRS_MAX) {
    throw WorkspaceErrors.workspace_invalid(`add_dirs has ${texts.length} entries, at most ${ADD_DIRS_MAX} are allowed`)
  }
  const found = new Set<string>()
  for (const [at, text] of texts.entries()) found.add(await canonicalDirectory(text, `add_dirs.${at}`))
  found.delete(root)
  return [...found]
}

/** The state of a path after resolving symbolic links. */
export type PathState =
  | { readonly is: 'directory'; readonly real: string }
  | { readonly is: 'other' }
  | { readonly is: 'gone'; readonly missing: boolean; readonly why: string }

/** Only a directory has the entry, and only a user with access to the directory can read it: otherwise it rejects. */
const checkDirectory = (real: string) => stat(`${real}/.`)

/** Whether a canonical path is a directory that the daemon has access to. */
export const isDirectory = (real: string): Promise<boolean> =>
  checkDirectory(real).then(
    () => true,
    () => false,
  )

export async function directoryAt(wanted: string): Promise<PathState> {
  try {
    const real = await realpath(wanted)
    await checkDirectory(real)
    return { is: 'directory', real }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOTDIR' && (await stat(wanted).catch(() => undefined))) return { is: 'other' }
    const missing = code === 'ENOENT' || code === 'ENOTDIR'
    return { is: 'gone', missing, why: missing ? 'does not exist' : `cannot be reached (${code ?? 'unknown error'})` }
  }
}

/** Advice for a person about a root in this state. */
export function advice(found: Exclude<PathState, { is: 'directory' }>): string {
  return found.is === 'gone' && !found.missing
    ? 'give the user of the daemon access to it'
    : 'restore it, register its new location (svc workspace add <dir>), or remove the workspace'
}

/** An absolute path with the symbolic links of its existing part resolved. */
export interface Canonical {
  readonly path: string
  /** The part that exists. */
  readonly existing: string
}

export async function canonicalPath(wanted: string): Promise<Canonical> {
  for (const ancestor of ancestorsOf(wanted)) {
    const real = await realpath(ancestor).catch(() => undefined)
    if (real !== undefined) return { path: path.join(real, path.relative(ancestor, wanted)), existing: real }
  }
  return { path: wanted, existing: '/' }
}

/** The path itself and every folder above it, nearest first. */
export function ancestorsOf(wanted: string): string[] {
  const all = [wanted]
  for (let at = wanted; path.dirname(at) !== at; at = path.dirname(at)) all.push(path.dirname(at))
  return all
}
