import { type Redact, type RedactedStream, turn } from '../../../../kernel/plugin.js'
import { redactText, SecretMatcher } from '../../../platform/redaction/api.js'
import { isEnvironment, isReference, isSecretName } from './names.js'

const REDACTED = '[redacted]'
/** Texts within texts that are looked into: JSON in JSON, base64 of JSON in a URL. */
const DEEPEST_TEXT = 4
/** Deeper data is cut off: what is not searched must not leave. */
const DEEPEST = 48
/** Values of fewer characters are words of ordinary text. */
const SHORTEST_HIDDEN = 6
const LONGEST_HIDDEN = 8192

const BASE64 = /[A-Za-z0-9+/_-]{16,}={0,2}/g
const PERCENT = /[\w.~%+&=;:/?@!$'()*,-]*%[0-9a-f]{2}[\w.~%+&=;:/?@!$'()*,-]*/gi
/** `["authorization", "…"]` in a text that is no JSON as a whole, also in quoted JSON: its quotes have backslashes then. */
const PAIR = /(\[\s*(\\*)"([\w-]{2,64})\2"\s*,\s*\2")((?:(?!\2").)*)(\2"\s*\])/g
/** A text that consists of characters that people write. */
const WRITTEN = /^[\t\n\r\x20-\x7e\u00a0-\ud7ff\ue000-\ufffc]+$/

/** A line of a log as it was parsed; a line that is no JSON is a text. */
export interface LogLine {
  readonly text: string
  readonly fields?: Readonly<Record<string, unknown>>
}

/**
 * Removes secrets from what goes into a bundle: values that plugins registered, values that the environment and the configuration
 * of the daemon hold under names that suggest a secret, and what looks like a secret, also inside JSON text, base64 and URLs.
 */
export class Scrubber {
  readonly #own = new SecretMatcher()
  readonly #hidden = new Set<string>()

  /** @param known the values that plugins registered; absent where no daemon runs */
  constructor(private readonly known: Pick<Redact, 'text' | 'stream'> | undefined) {}

  /** Hides a value wherever it occurs. */
  hide(value: string): void {
    const text = value.trim()
    if (text.length < SHORTEST_HIDDEN || text.length > LONGEST_HIDDEN || this.#hidden.has(text)) return
    if (isReference(text) || /^(?:true|false|null|none|[\d.]+)$/i.test(text)) return
    this.#hidden.add(text)
    this.#own.add(text, { short: true })
  }

  /** Hides the variables of an environment whose names suggest a secret. */
  hideEnvironment(env: Readonly<Record<string, string | undefined>>): void {
    for (const [name, value] of Object.entries(env))
      if (value !== undefined && isSecretName(name) && !name.startsWith('SVC_')) this.hide(value)
  }

  /** Hides the values of data, such as a configuration, that stand under names which suggest a secret. */
  hideMembers(data: unknown, isHidden = false, depth = 0): void {
    if (typeof data === 'string') {
      if (isHidden) this.hide(data)
    } else if (typeof data === 'object' && data !== null && depth < DEEPEST) {
      if (Array.isArray(data)) for (const item of data) this.hideMembers(item, isHidden, depth + 1)
      else
        for (const [name, member] of Object.entries(data))
          this.hideMembers(member, isHidden || isSecretName(name) || isEnvironment(name), depth + 1)
    }
  }

  /** A text without secrets. */
  text(text: string, depth = 0): string {
    let clean = this.#values(text)
    if (clean.includes('["') || clean.includes('[\\') || clean.includes('[ '))
      clean = clean.replace(PAIR, (whole, before: string, _, name: string, value: string, after: string) =>
        isSecretName(name) && !isReference(value) ? `${before}${REDACTED}${after}` : whole,
      )
    if (depth < DEEPEST_TEXT) {
      clean = this.#embedded(clean, depth)
      if (clean.includes('%')) clean = clean.replace(PERCENT, token => this.#percent(token, depth))
      clean = clean.replace(BASE64, token => this.#base64(token, depth))
    }
    return redactText(clean)
  }

  /** Data without secrets: its texts, what stands under the name of a secret, and names of members themselves. */
  data(value: unknown, depth = 0): unknown {
    if (typeof value === 'string') return this.text(value)
    if (typeof value === 'bigint') return `${value}`
    if (typeof value !== 'object' || value === null) return value
    if (depth > DEEPEST) return '[too deep]'
    if (Array.isArray(value)) return this.#list(value, depth)
    const { toJSON } = value as { toJSON?: unknown }
    if (typeof toJSON === 'function') return this.data(toJSON.call(value), depth + 1)
    const pair = pairOf(value)
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => {
        const isHidden = isSecretName(name) || (pair && /^(?:value|secret_value)$/i.test(name))
        if (isHidden) return [name, this.#hideAll(member)]
        if (isEnvironment(name) && typeof member === 'object') return [name, this.#hideAll(member)]
        return [this.text(name), this.data(member, depth + 1)]
      }),
    )
  }

  /** Lines of a log. A value that one line begins and the next of the same source goes on with is hidden in both. */
  async lines(lines: readonly LogLine[]): Promise<string[]> {
    const texts = lines.map(({ text, fields }) => (typeof fields?.msg === 'string' ? fields.msg : text))
    const sources = lines.map(({ fields }) => `${fields?.plugin ?? ''}`)
    for (const open of [() => this.known?.stream(), () => this.#own.stream()]) acrossLines(texts, sources, open)
    openEnded(texts, sources)
    const clean: string[] = []
    for (const [n, { fields }] of lines.entries()) {
      const text = texts[n] as string
      clean.push(
        fields
          ? JSON.stringify(this.data(fields.msg === undefined ? fields : { ...fields, msg: text }))
          : this.text(text),
      )
      if (n % 200 === 199) await turn()
    }
    return clean
  }

  #values(text: string): string {
    return this.#own.replace(this.known?.text(text) ?? text)
  }

  /** Of a header as a pair, `["authorization", "…"]`, and of arguments, `["--token", "…"]`, what follows the name. */
  #list(items: readonly unknown[], depth: number): unknown[] {
    return items.map((item, n) => {
      const before = items[n - 1]
      const isNamed = typeof item === 'string' && typeof before === 'string' && isSecretName(before.replace(/^-+/, ''))
      const isLast = items.length === 2 || /^-/.test(`${before}`)
      return isNamed && isLast && !/\s/.test(before as string) ? this.#hideAll(item) : this.data(item, depth + 1)
    })
  }

  #hideAll(member: unknown): unknown {
    if (typeof member === 'string') return member === '' || isReference(member) ? member : REDACTED
    if (Array.isArray(member)) return member.map(item => this.#hideAll(item))
    if (typeof member === 'object' && member !== null)
      return Object.fromEntries(Object.entries(member).map(([name, item]) => [this.text(name), this.#hideAll(item)]))
    return member
  }

  /** A text that is JSON as a whole: its members have names. */
  #embedded(text: string, depth: number): string {
    if (!/^\s*[[{"]/.test(text)) return text
    try {
      const value: unknown = JSON.parse(text)
      if (typeof value === 'string') return JSON.stringify(this.text(value, depth + 1))
      if (typeof value !== 'object' || value === null) return text
      return JSON.stringify(this.data(value, depth + 1))
    } catch {
      return text
    }
  }

  #percent(token: string, depth: number): string {
    const decoded = decodedPercent(token)
    if (decoded === undefined || decoded === token) return token
    const clean = this.text(decoded, depth + 1)
    return clean === decoded ? token : encodeURIComponent(clean)
  }

  #base64(token: string, depth: number): string {
    const decoded = Buffer.from(token, 'base64').toString('utf8')
    if (!WRITTEN.test(decoded)) return token
    return this.text(decoded, depth + 1) === decoded ? token : REDACTED
  }
}

/** `{ "name": "authorization", "value": "…" }`: the value is that of the name. */
function pairOf(value: object): boolean {
  const { name, key, header, value: held } = value as Readonly<Record<string, unknown>>
  const named = [name, key, header].find(text => typeof text === 'string')
  return typeof held === 'string' && typeof named === 'string' && isSecretName(named)
}

function decodedPercent(token: string): string | undefined {
  try {
    return decodeURIComponent(token.replaceAll('+', ' '))
  } catch {
    // Bytes that are no UTF-8, or a lone sign: each of its parts by itself.
    return token.replace(/(?:%[0-9a-f]{2})+/gi, part => Buffer.from(part.replaceAll('%', ''), 'hex').toString('latin1'))
  }
}

/** Passes the texts of each source through one stream, so that values are found which begin in one text and end in the next. */
function acrossLines(texts: string[], sources: readonly string[], open: () => RedactedStream | undefined): void {
  const streams = new Map<string, { readonly stream: RedactedStream; last: number; tail: string }>()
  for (const [n, source] of sources.entries()) {
    let one = streams.get(source)
    if (!one) {
      const stream = open()
      if (!stream) return
      one = { stream, last: -1, tail: '' }
      streams.set(source, one)
    }
    const text = texts[n] as string
    const before = one.tail
    const pushed = one.stream.push(text)
    // What the stream held back of the line before: as it was, or replaced together with the beginning of this line.
    const isWhole = before !== '' && pushed.startsWith(before)
    if (isWhole) texts[one.last] += before
    else if (before !== '') texts[one.last] += REDACTED
    const own = isWhole ? pushed.slice(before.length) : pushed
    one.tail = one.stream.held > 0 ? text.slice(-one.stream.held) : ''
    texts[n] = own
    one.last = n
  }
  for (const { stream, last } of streams.values()) texts[last] += stream.end()
}

/** A line that ends within the value of a secret name has the rest of the value at the beginning of the next line of its source. */
function openEnded(texts: string[], sources: readonly string[]): void {
  const last = new Map<string, number>()
  for (const [n, source] of sources.entries()) {
    const before = texts[last.get(source) ?? -1]
    const name = before === undefined ? undefined : OPEN_END.exec(before.slice(-400))?.[1]
    if (name !== undefined && isSecretName(name)) texts[n] = (texts[n] as string).replace(FIRST_WORD, REDACTED)
    last.set(source, n)
  }
}

/** The word at the beginning of a text, unless it is the name of a value itself. */
// What begins JSON stays: without its brace nothing of it would be searched by names.
const FIRST_WORD = /^(?![[{])[^\s"',;=:]+(?![^\s"',;=:]|["']?\s*[=:])/
const OPEN_END = /([A-Za-z][\w-]{1,63})\\*["']?\s*[=:]\s*\\*["']?[^\s"',;]*$/
