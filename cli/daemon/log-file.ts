import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { openRegularFileSync } from '../../kernel/kit/read-file.js'

/** Retention of a log: bytes per file, rotated files, and their maximum age in milliseconds (0: no limit on the age). */
export interface LogLimits {
  readonly maxBytes: number
  readonly backups: number
  readonly maxAgeMs: number
}

/** Milliseconds between two checks for a replaced file, an unwritable file and expired files. */
const LOOK_MS = 10_000

/** Path of the daemon's log. */
export function logPath(home: string): string {
  return join(home, 'logs', 'svc.log')
}

/** A log and its existing rotated files, newest first. */
export function logFiles(path: string): string[] {
  const rotated = rotatedOf(path).map(number => `${path}.${number}`)
  return lstatSync(path, { throwIfNoEntry: false }) ? [path, ...rotated] : rotated
}

/** Opens a log for appending, 0600; returns the descriptor. @throws Fault `file_not_regular`; the system's error */
export function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  return openRegularFileSync(path, { flags: constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT })
}

/**
 * A log that is written synchronously, so that the last line before a crash is kept. It never throws: a daemon with an unwritable
 * log continues, and logs the number of lost lines later.
 */
export class LogFile {
  #file: number | undefined
  #size = 0
  /** The last line is incomplete. */
  #torn = false
  #lost = 0
  #lookAt = Number.NEGATIVE_INFINITY
  #limits: LogLimits | undefined

  /** @param now epoch milliseconds */
  constructor(
    private readonly path: string,
    private readonly now: () => number = Date.now,
  ) {
    this.#checkFile()
  }

  /**
   * Enables rotation. Only for the process that holds the lock of the home: a failed start writes its reason, but must not rotate
   * the file of the running daemon.
   */
  rotate(limits: LogLimits): void {
    this.#limits = limits
    this.#checkFile()
    this.#rotateFull()
  }

  /** Whether the log file is open. */
  get isOpen(): boolean {
    return this.#file !== undefined
  }

  write(line: string): void {
    if (this.now() >= this.#lookAt) this.#checkFile()
    const lossLine = this.#lost > 0 ? `${JSON.stringify(this.#lostLine())}\n` : ''
    if (!this.#append(`${this.#torn ? '\n' : ''}${lossLine}${line}`)) this.#lost++
    else {
      this.#lost = 0
      this.#rotateFull()
    }
  }

  #append(text: string): boolean {
    if (this.#file === undefined) return false
    const bytes = Buffer.from(text)
    let written = 0
    try {
      while (written < bytes.length) written += writeSync(this.#file, bytes, written)
      this.#torn = false
    } catch {
      // A full disk must not end the daemon because of its log.
      this.#torn ||= written > 0
    }
    this.#size += written
    return written === bytes.length
  }

  #lostLine() {
    const time = new Date(this.now()).toISOString()
    return { level: 'warn', time, msg: `the log could not be written for a while; lines lost: ${this.#lost}` }
  }

  #checkFile(): void {
    this.#lookAt = this.now() + LOOK_MS
    try {
      const there = statSync(this.path, { throwIfNoEntry: false })
      if (this.#file === undefined || there?.ino !== fstatSync(this.#file).ino) this.#open()
      if (this.#limits) removeOld(this.path, this.#limits, this.now())
    } catch {
      // The open file stays in use until the next check.
    }
  }

  /** Opens the new file before the old descriptor is closed, because its number could be reused at once. */
  #open(): void {
    const old = this.#file
    const file = openLog(this.path)
    this.#file = file
    this.#size = fstatSync(file).size
    this.#torn = this.#size > 0 && !endsLine(this.path, this.#size)
    if (old !== undefined) closeSync(old)
  }

  #rotateFull(): void {
    if (!this.#limits || this.#file === undefined || this.#size < this.#limits.maxBytes) return
    try {
      shift(this.path, this.#limits.backups)
      this.#open()
      removeOld(this.path, this.#limits, this.now())
    } catch {
      // The file grows instead, and rotation is retried after the same amount.
      this.#size = 0
    }
  }
}

/** Each step keeps every line in one file. A gap left by an interrupted rotation is filled, and later files stay. */
function shift(path: string, backups: number): void {
  if (backups === 0) {
    rmSync(path, { force: true })
    return
  }
  const taken = new Set(rotatedOf(path))
  let free = 1
  while (taken.has(free) && free < backups) free++
  for (let to = free; to >= 1; to--) renameSync(to === 1 ? path : `${path}.${to - 1}`, `${path}.${to}`)
}

function removeOld(path: string, { backups, maxAgeMs }: LogLimits, now: number): void {
  for (const number of rotatedOf(path)) {
    const file = `${path}.${number}`
    const modified = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? now
    if (number > backups || (maxAgeMs > 0 && now - modified > maxAgeMs)) rmSync(file, { force: true })
  }
}

/** Numbers of the rotated files, newest first. */
function rotatedOf(path: string): number[] {
  const start = `${basename(path)}.`
  try {
    return readdirSync(dirname(path))
      .filter(name => name.startsWith(start) && /^[1-9]\d{0,3}$/.test(name.slice(start.length)))
      .map(name => Number(name.slice(start.length)))
      .sort((a, b) => a - b)
  } catch {
    return []
  }
}

function endsLine(path: string, size: number): boolean {
  const file = openRegularFileSync(path)
  try {
    const last = Buffer.alloc(1)
    return readSync(file, last, 0, 1, size - 1) === 1 && last.toString() === '\n'
  } finally {
    closeSync(file)
  }
}

/** The last `count` lines of a log after a position; JSON lines as level and text. */
export function logTail(path: string, from: number, count: number): string[] {
  return linesAfter(path, from).slice(-count).map(readable)
}

/** The last fatal reason that a daemon logged after a position, with its next step; undefined without one. */
export function lastReason(
  path: string,
  from: number,
): { readonly msg: string; readonly code: string; readonly next: string } | undefined {
  for (const line of linesAfter(path, from).reverse()) {
    const { level, msg, code, next } = parsed(line)
    if (level === 'error' && typeof msg === 'string' && typeof code === 'string' && typeof next === 'string')
      return { msg, code, next }
  }
  return undefined
}

function linesAfter(path: string, from: number): string[] {
  const about = statSync(path, { throwIfNoEntry: false })
  const size = about?.isFile() ? about.size : 0
  if (size === 0) return []
  // A smaller file was rotated in the meantime.
  const start = Math.max(size < from ? 0 : from, size - 64 * 1024)
  const buffer = Buffer.alloc(size - start)
  const file = openRegularFileSync(path)
  try {
    readSync(file, buffer, 0, buffer.length, start)
  } finally {
    closeSync(file)
  }
  return buffer.toString('utf8').split('\n').filter(Boolean)
}

function readable(line: string): string {
  const { level, msg, plugin, error, next } = parsed(line)
  const parts = [level, plugin && `${plugin}:`, msg, error && `(${error})`, next && `next: ${next}`]
  return parts.filter(Boolean).join(' ') || line
}

/** The fields of a JSON line; empty for other lines. */
function parsed(line: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(line))
  } catch {
    return {}
  }
}
