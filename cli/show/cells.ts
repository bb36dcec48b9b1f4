import type { CliColumn } from '../../kernel/kit/annotations/index.js'
import { cleanLine, markedLine } from './text.js'

/** The value at a dotted path; the empty path is the value itself. */
export function pick(value: unknown, path: string): unknown {
  if (path === '') return value
  let at = value
  for (const name of path.split('.')) {
    if (at === null || typeof at !== 'object' || !Object.hasOwn(at, name)) return undefined
    at = (at as Record<string, unknown>)[name]
  }
  return at
}

/** The identifier of a row: its id, an id in its first column, its name, its first column, or any other id in it. */
export function idOf(row: unknown, columns: readonly CliColumn[]): string | undefined {
  const [first] = columns
  const own = first?.path.endsWith('_id') ? pick(row, first.path) : undefined
  const members = Object.keys(Object(row))
  const about = members.find(name => name.endsWith('_id'))
  const id =
    pick(row, 'id') ?? own ?? pick(row, 'name') ?? (first && pick(row, first.path)) ?? (about && pick(row, about))
  return typeof id === 'number' || (typeof id === 'string' && id !== '') ? String(id) : undefined
}

/** The text of a cell for a person, in one line. `now` in milliseconds since 1970. */
export function cellText(row: unknown, { path, as, words }: CliColumn, now: number): string {
  const value = pick(row, path)
  if (value === undefined || value === null || value === '') return '-'
  if (as === 'ago') return agoText(value, now)
  if (as === 'time') return timeText(value)
  if (as === 'duration') return durationText(Number(value) * (path.endsWith('_seconds') ? 1000 : 1))
  if (as === 'bytes') return bytesText(Number(value))
  return (words && typeof value === 'string' && words[value]) || plainText(value)
}

function plainText(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(entryText).join(', ')
  if (typeof value === 'object' && value !== null) return cleanLine(JSON.stringify(value))
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return markedLine(String(value))
}

/** A list entry is shown by its name, title or message, if it has one. */
function entryText(value: unknown): string {
  const { name, title, message } = (value ?? {}) as { name?: unknown; title?: unknown; message?: unknown }
  return plainText([name, title, message].find(text => typeof text === 'string') ?? value)
}

function timeText(value: unknown): string {
  const at = new Date(value as string | number)
  if (Number.isNaN(at.getTime())) return plainText(value)
  const two = (part: number) => String(part).padStart(2, '0')
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

function agoText(value: unknown, now: number): string {
  const at = new Date(value as string | number).getTime()
  if (Number.isNaN(at)) return plainText(value)
  const distance = Math.abs(now - at)
  if (distance < 1000) return 'now'
  const text = largestUnit(distance)
  return at > now ? `in ${text}` : `${text} ago`
}

const units: readonly (readonly [string, number])[] = [
  ['y', 365 * 86_400_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
]

function largestUnit(ms: number): string {
  const [name, size] = units.find(([, size]) => ms >= size) ?? ['s', 1000]
  return `${Math.floor(ms / size)}${name}`
}

/** The two largest units of a span of milliseconds: `2h 5m`, `350ms`. */
export function durationText(ms: number): string {
  if (!Number.isFinite(ms)) return '-'
  if (Math.abs(ms) < 1000) return `${Math.round(ms)}ms`
  const first = units.findIndex(([, size]) => Math.abs(ms) >= size)
  const [name, size] = units[first] as readonly [string, number]
  const whole = Math.trunc(ms / size)
  const [nextName, nextSize] = units[first + 1] ?? ['', 0]
  const rest = nextSize === 0 ? 0 : Math.floor(Math.abs(ms % size) / nextSize)
  return rest === 0 ? `${whole}${name}` : `${whole}${name} ${rest}${nextName}`
}

/** `12.3 MiB` */
export function bytesText(bytes: number): string {
  if (!Number.isFinite(bytes)) return '-'
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let value = bytes
  let unit = 0
  while (Math.abs(value) >= 1024 && unit < names.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${names[unit]}`
}
