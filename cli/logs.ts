import { closeSync, fstatSync, readSync, statSync } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ColorName } from '../kernel/kit/commands/context.js'
import { openRegularFileSync, unreadable } from '../kernel/kit/read-file.js'
import { durationMs } from '../schemas/duration.js'
import { logFiles, logPath } from './daemon/log-file.js'
import { usageFault } from './fault.js'
import type { LocalContext } from './local.js'
import type { Output } from './show/output.js'
import { jsonText } from './show/text.js'

/** In ascending order of severity. */
const levels = ['debug', 'info', 'warn', 'error'] as const
type Level = (typeof levels)[number]

const colors: Readonly<Record<Level, ColorName>> = { debug: 'dim', info: 'green', warn: 'yellow', error: 'red' }
const defaultLines = 50
const pollMs = 200
const chunkBytes = 64 * 1024
const lookBytes = 64 * 1024 * 1024

interface Line {
  readonly level: Level
  readonly msg: string
  readonly time?: string
  readonly [field: string]: unknown
}

/**
 * `logs`: the last lines of the daemon's log, oldest first; `--follow` adds new lines. The file is read directly, so that the log
 * of a daemon that does not start or respond is available too.
 */
export async function printLogs({ options, out, home, signal }: LocalContext): Promise<undefined> {
  const least = levelOf(options.level)
  const since = sinceOf(options.since)
  const plugin = options.plugin === undefined ? undefined : String(options.plugin)
  const count = Number(options.lines ?? (since === undefined ? defaultLines : Number.POSITIVE_INFINITY))
  if (count < 0) throw usageFault('--lines takes an integer of at least 0', 'svc logs --lines 100')
  const path = logPath(home)
  const shown = (line: Line) =>
    levels.indexOf(line.level) >= least &&
    (plugin === undefined || line.plugin === plugin) &&
    // A line without a time belongs to its neighbours.
    (since === undefined || line.time === undefined || Date.parse(line.time) >= since)
  const follow = options.follow === true
  // The position is taken first, so that lines written in the meantime are not lost.
  const tail = follow ? new Tail(path) : undefined
  try {
    const lines = lastLines(path, count, shown, tail?.position)
    if (out.mode === 'json' && !follow) out.value(lines)
    else for (const line of lines) printLine(line, out)
    if (lines.length === 0 && !follow) {
      const isFiltered = least > 0 || since !== undefined || plugin !== undefined
      const isThere = logFiles(path).length > 0
      if (isFiltered && isThere) out.line('no such lines; all of them: svc logs --lines 100')
      else out.line(`nothing is logged at ${path}; the daemon writes it: svc daemon start`)
    }
    while (tail) {
      for (const line of tail.read().map(parseLine)) if (shown(line)) printLine(line, out)
      await sleep(pollMs, undefined, { signal })
    }
  } finally {
    tail?.close()
  }
  return undefined
}

function levelOf(option: unknown): number {
  if (option === undefined) return 0
  const at = (levels as readonly unknown[]).indexOf(option)
  if (at < 0) throw usageFault(`--level is one of ${levels.join(', ')}, not ${JSON.stringify(option)}`)
  return at
}

/** Epoch milliseconds of a time, or of a duration before now. */
function sinceOf(option: unknown): number | undefined {
  if (option === undefined) return undefined
  const ago = durationMs(String(option))
  const at = ago === undefined ? Date.parse(String(option)) : Date.now() - ago
  if (Number.isNaN(at))
    throw usageFault(`--since takes a duration or a time, not ${JSON.stringify(option)}`, 'svc logs --since 1h')
  return at
}

/** The newest lines of the log up to a position, including rotated files, at most `count`, oldest first. */
function lastLines(path: string, count: number, shown: (line: Line) => boolean, end?: number): Line[] {
  let lines: Line[] = []
  for (const file of logFiles(path)) {
    if (lines.length >= count) break
    const found = lastText(file, file === path ? end : undefined)
      .split('\n')
      .filter(Boolean)
      .map(parseLine)
      .filter(shown)
    lines = [...found.slice(-(count - lines.length)), ...lines]
  }
  return lines
}

function openLogToRead(path: string): number {
  try {
    return openRegularFileSync(path)
  } catch (error) {
    throw unreadable(path, error)
  }
}

/** The end of a file up to a position, as whole lines; at most `lookBytes` are read. */
function lastText(path: string, end?: number): string {
  const file = openLogToRead(path)
  try {
    const stop = end ?? fstatSync(file).size
    const start = Math.max(0, stop - lookBytes)
    const bytes = Buffer.alloc(stop - start)
    const text = bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, start))
    return start === 0 ? text : text.slice(text.indexOf('\n') + 1 || text.length)
  } finally {
    closeSync(file)
  }
}

/** Parses a line. A line that is not JSON comes from code without a logger. */
function parseLine(text: string): Line {
  try {
    const line = JSON.parse(text)
    if (levels.includes(line?.level)) return { ...line, msg: String(line.msg ?? '') }
  } catch {}
  return { level: 'error', msg: text }
}

function printLine(line: Line, out: Output): void {
  if (out.json) {
    out.row(line)
    return
  }
  const { level, msg, time, ...fields } = line
  const clock = typeof time === 'string' && !Number.isNaN(Date.parse(time)) ? localTime(new Date(time)) : ''
  const more = Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : jsonText(value)}`)
    .join(' ')
  const head = [clock && out.color('dim', clock), out.color(colors[level], level.toUpperCase().padEnd(5))]
  out.line([...head, msg, more && out.color('dim', more)].filter(Boolean).join(' '))
}

function localTime(at: Date): string {
  const two = (part: number) => String(part).padStart(2, '0')
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

/** Follows the appended part of a file, across rotations; the file may not exist yet. */
class Tail {
  #file: number | undefined
  #at = 0
  #rest = ''
  #decoder = new StringDecoder('utf8')

  constructor(private readonly path: string) {
    this.#open()
    if (this.#file !== undefined) this.#at = fstatSync(this.#file).size
  }

  /** File size at the beginning; undefined without a file. */
  get position(): number | undefined {
    return this.#file === undefined ? undefined : this.#at
  }

  /** The whole lines appended since the last read. */
  read(): string[] {
    if (this.#file === undefined) this.#open()
    if (this.#file === undefined) return []
    this.#drain(this.#file)
    const now = statSync(this.path, { throwIfNoEntry: false })
    if (now && now.ino !== fstatSync(this.#file).ino) {
      this.close()
      this.#open()
      if (this.#file !== undefined) this.#drain(this.#file)
    }
    const lines = this.#rest.split('\n')
    this.#rest = lines.pop() as string
    return lines.filter(Boolean)
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
    this.#at = 0
  }

  #open(): void {
    try {
      this.#file = openRegularFileSync(this.path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw unreadable(this.path, error)
    }
  }

  #drain(file: number): void {
    const chunk = Buffer.alloc(chunkBytes)
    for (let size = readSync(file, chunk, 0, chunk.length, this.#at); size > 0; ) {
      this.#at += size
      this.#rest += this.#decoder.write(chunk.subarray(0, size))
      size = readSync(file, chunk, 0, chunk.length, this.#at)
    }
  }
}
