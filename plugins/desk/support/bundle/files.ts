import { close, fstat, read } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { openRegularFile, readRegularFile } from '../../../../kernel/kit/read-file.js'
import { clip } from '../../../../kernel/kit/text.js'
import { iso, messageOf } from '../../../../kernel/plugin.js'
import { readJson } from '../../../platform/configuration/api.js'
import { Limits } from '../limits.js'
import type { LogLine, Scrubber } from '../redact/scrubber.js'
import type { Content } from './content.js'

const MAX_CONFIG_BYTES = 16 * 1024 * 1024
/** Most entries of the tree and of one folder, and the deepest level. */
const MOST_ENTRIES = 10_000
const MOST_OF_FOLDER = 500
const DEEPEST = 8
/** Most rotated log files that are read. */
const MOST_ROTATED = 5
/** Most bytes of one log line. */
const LONGEST_LINE = 64 * 1024

const readAt = promisify(read)
const stat = promisify(fstat)
const closed = promisify(close)

/** Reads `config.json` and hides its secrets. Malformed text is searched by pattern instead of by member name. */
export async function readConfig(root: string, scrubber: Scrubber): Promise<unknown> {
  const file = path.join(root, 'config.json')
  const text = (await readRegularFile(file, { maxBytes: MAX_CONFIG_BYTES }))?.toString()
  if (text === undefined) return { note: 'there is no config.json: all settings have their defaults' }
  try {
    const value = readJson(text, 'config.json')
    scrubber.hideMembers(value)
    return value
  } catch (error) {
    return { problem: messageOf(error), text: text.slice(0, Limits.artifact / 2) }
  }
}

/** Names, kinds, sizes, permissions and times of the home's files; never contents or link targets. */
export async function homeTree(root: string): Promise<Content> {
  const items: unknown[] = []
  let more = false
  const folders: { readonly at: string; readonly depth: number }[] = [{ at: '', depth: 0 }]
  for (let folder = folders.shift(); folder; folder = folders.shift()) {
    const { at, depth } = folder
    const found = await readdir(path.join(root, at), { withFileTypes: true }).catch(error => messageOf(error))
    if (typeof found === 'string') {
      items.push({ path: at, problem: found })
      continue
    }
    const entries = found.sort((a, b) => (a.name < b.name ? -1 : 1))
    if (entries.length > MOST_OF_FOLDER) {
      more = true
      items.push({ path: at, entries: entries.length, listed: MOST_OF_FOLDER })
    }
    for (const entry of entries.slice(0, MOST_OF_FOLDER)) {
      if (items.length >= MOST_ENTRIES) return { kind: 'list', head: { root }, member: 'entries', items, more: true }
      const name = path.join(at, entry.name)
      const about = await lstat(path.join(root, name)).catch(() => undefined)
      if (!about) continue
      const type = about.isDirectory() ? 'folder' : about.isFile() ? 'file' : about.isSymbolicLink() ? 'link' : 'other'
      const mode = (about.mode & 0o7777).toString(8).padStart(4, '0')
      items.push({ path: name, type, bytes: about.size, mode, modified_at: iso(Math.floor(about.mtimeMs)) })
      if (type !== 'folder') continue
      if (depth < DEEPEST) folders.push({ at: name, depth: depth + 1 })
      else more = true
    }
  }
  return { kind: 'list', head: { root }, member: 'entries', items, more }
}

/** The end of the log, across rotated files, without secrets. */
export async function logTail(root: string, scrubber: Scrubber): Promise<Content> {
  const file = path.join(root, 'logs', 'svc.log')
  const texts: string[] = []
  let left: number = Limits.logTail
  let truncated = false
  for (const name of [file, ...Array.from({ length: MOST_ROTATED }, (_, n) => `${file}.${n + 1}`)]) {
    const end = left > 0 ? await endOfFile(name, left) : undefined
    if (!end) continue
    texts.unshift(end.text)
    left -= Buffer.byteLength(end.text)
    truncated = end.truncated || left <= 0
  }
  if (texts.length === 0) throw new Error('there is no log')
  const lines = texts
    .join('')
    .split('\n')
    .filter(line => line !== '')
  const clean = await scrubber.lines(lines.map(lineOf))
  return { kind: 'text', text: clean.map(line => `${line}\n`).join(''), truncated }
}

function lineOf(line: string): LogLine {
  const text = clip(line, LONGEST_LINE)
  try {
    const fields: unknown = JSON.parse(text)
    if (typeof fields === 'object' && fields !== null && !Array.isArray(fields))
      return { text, fields: fields as Record<string, unknown> }
  } catch {}
  return { text }
}

/** At most `max` bytes of a file's end, from the start of a line; undefined if there is no file. */
export async function endOfFile(
  file: string,
  max: number,
): Promise<{ readonly text: string; readonly truncated: boolean } | undefined> {
  let handle: number
  try {
    handle = await openRegularFile(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    const { size } = await stat(handle)
    const start = Math.max(0, size - max)
    const bytes = Buffer.alloc(size - start)
    let done = 0
    while (done < bytes.length) {
      const { bytesRead } = await readAt(handle, bytes, done, bytes.length - done, start + done)
      if (bytesRead === 0) break
      done += bytesRead
    }
    const text = bytes.toString('utf8', 0, done)
    return { text: start === 0 ? text : text.slice(text.indexOf('\n') + 1 || text.length), truncated: start > 0 }
  } finally {
    await closed(handle)
  }
}
