import { closeSync, fstatSync, mkdirSync, openSync, readSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Rotation by size (Behaviour 1.9). */
const maxBytes = 10 * 1024 * 1024
/** Rotated logs that are kept, `.1` being the newest. */
export const backups = 5

/** Path of the daemon's log. */
export function logPath(home: string): string {
  return join(home, 'logs', 'svc.log')
}

/** Opens a log for appending, 0600, rotated before when it is full; returns the descriptor. */
export function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) >= maxBytes) rotate(path)
  return openSync(path, 'a', 0o600)
}

/** A log that is written at once, so that the last line before a crash is there, and rotated when it is full. */
export class LogFile {
  #file: number
  #size: number

  constructor(private readonly path: string) {
    this.#file = openLog(path)
    this.#size = fstatSync(this.#file).size
  }

  write(line: string): void {
    try {
      this.#size += writeSync(this.#file, line)
      if (this.#size < maxBytes) return
      closeSync(this.#file)
      rotate(this.path)
      this.#file = openLog(this.path)
      this.#size = 0
    } catch {
      // A full disk must not take the daemon down for the sake of its log.
    }
  }
}

function rotate(path: string): void {
  rmSync(`${path}.${backups}`, { force: true })
  for (let i = backups - 1; i >= 0; i--) {
    const from = i === 0 ? path : `${path}.${i}`
    if (statSync(from, { throwIfNoEntry: false })) renameSync(from, `${path}.${i + 1}`)
  }
}

/** The last lines of a log after a position, at most `count`, each readable: JSON lines as level and text. */
export function logTail(path: string, from: number, count: number): string[] {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size === 0) return []
  // Smaller than it was: it was rotated meanwhile.
  const start = Math.max(size < from ? 0 : from, size - 64 * 1024)
  const buffer = Buffer.alloc(size - start)
  const file = openSync(path, 'r')
  try {
    readSync(file, buffer, 0, buffer.length, start)
  } finally {
    closeSync(file)
  }
  return buffer.toString('utf8').split('\n').filter(Boolean).slice(-count).map(readable)
}

function readable(line: string): string {
  try {
    const { level, msg, plugin, error, next } = JSON.parse(line)
    const parts = [level, plugin && `${plugin}:`, msg, error && `(${error})`, next && `next: ${next}`]
    return parts.filter(Boolean).join(' ')
  } catch {
    return line
  }
}
