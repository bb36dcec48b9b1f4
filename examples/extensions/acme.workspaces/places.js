import { constants } from 'node:fs'
import { lstat, mkdir, open, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { iso } from 'svc/plugin'
import { isInside, WorkspaceErrors, writeWhole } from 'svc/plugins/workspaces'

const PATH_MAX = 4096
const FILE_MAX = 64 * 1024

/** For texts of errors: quoted and bounded. */
export const quoted = text => JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text)

/** A path or reference as it was given, without what no file system takes. */
export function trimmed(given, what) {
  const text = given.trim()
  if (text === '') throw WorkspaceErrors.workspace_invalid(`${what} is empty`)
  if (text.length > PATH_MAX) throw WorkspaceErrors.workspace_invalid(`${what} has over ${PATH_MAX} characters`)
  if (text.includes('\0')) throw WorkspaceErrors.workspace_invalid(`${what} contains a NUL character`)
  return text
}

export function absolute(given, what) {
  const text = trimmed(given, what)
  if (path.isAbsolute(text)) return path.resolve(text)
  throw WorkspaceErrors.workspace_path_relative(`${what} must be an absolute path, got ${quoted(text)}`)
}

/** `{ real }` of a directory that can be entered, else `why` it is none, and whether it is `missing`. */
export async function lookAt(place) {
  try {
    const real = await realpath(place)
    await stat(`${real}/.`)
    return { real }
  } catch ({ code = 'unknown error' }) {
    if (code === 'ENOTDIR' && (await stat(place).catch(() => undefined))) return { why: 'is not a directory' }
    const missing = code === 'ENOENT' || code === 'ENOTDIR'
    return { missing, why: missing ? 'does not exist' : `cannot be reached (${code})` }
  }
}

export async function directory(given, what) {
  const { real, why } = await lookAt(absolute(given, what))
  if (real !== undefined) return real
  throw WorkspaceErrors.workspace_root_invalid(`${what} ${quoted(given)} ${why}`)
}

/** The path and all folders above it, nearest first. */
export function upwards(place) {
  const above = path.dirname(place)
  return above === place ? [place] : [place, ...upwards(above)]
}

/** A path with the links of what exists of it followed. */
export async function followed(wanted) {
  for (const place of upwards(wanted)) {
    const real = await realpath(place).catch(() => undefined)
    if (real !== undefined) return path.join(real, path.relative(place, wanted))
  }
  return wanted
}

/**
 * The ULID in `.svc/workspace.toml` of a root, which goes with the folder when that is moved; made where there is none that can
 * be read, or where `isCopy` says so of it.
 */
export async function identify(root, isCopy, { clock, ids }) {
  const folder = path.join(root, '.svc')
  await mkdir(folder, { recursive: true })
  const real = await realpath(folder)
  if (!isInside(real, root)) throw new Error(`${folder} leads out of the workspace, to ${real}`)
  const file = path.join(real, 'workspace.toml')
  const known = await ulidIn(file)
  if (known !== '' && !(await isCopy(known))) return known
  const lines = [
    `workspace_id = ${quotedToml(ulid(clock.now(), ids.hex(10)))}`,
    `created_at = ${quotedToml(iso(clock.now()))}`,
    `realpath_at_creation = ${quotedToml(root)}`,
  ]
  const there = await lstat(file).catch(() => undefined)
  await writeWhole(file, `${lines.join('\n')}\n`, { how: there ? 'replace' : 'create', unique: ids.hex(6) })
  return ulidIn(file)
}

const quotedToml = text => JSON.stringify(text).replaceAll('\u007f', '\\u007f')

/** Neither a link nor a pipe in its place is followed. */
async function ulidIn(file) {
  let handle
  try {
    handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const info = await handle.stat()
    if (!info.isFile() || info.size > FILE_MAX) return ''
    const text = await handle.readFile('utf8')
    return /^\s*workspace_id\s*=\s*["']([0-7][0-9A-HJKMNP-TV-Z]{25})["']\s*$/m.exec(text)?.[1] ?? ''
  } catch {
    return ''
  } finally {
    await handle?.close()
  }
}

/** 48 bits of time and 80 of chance, five to a character. */
function ulid(now, chance) {
  const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
  const bits = (BigInt(now) << 80n) | BigInt(`0x${chance}`)
  return Array.from({ length: 26 }, (_, at) => digits[Number((bits >> BigInt(5 * (25 - at))) & 31n)]).join('')
}
