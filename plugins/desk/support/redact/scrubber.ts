import { type Redact, type RedactedStream, turn } from '../../../../kernel/plugin.js'
import { redactText, SecretMatcher } from '../../../platform/redaction/api.js'
import { isEnvironment, isReference, isSecretName } from './names.js'

const REDACTED = '[redacted]'
/** Deepest level of nested texts that is searched, such as JSON in JSON, or base64 of JSON in a URL. */
const DEEPEST_TEXT = 4
/** Deepest level of data; deeper data is cut off, because unsearched data must not leave. */
const DEEPEST = 48
/** Shortest hidden value in characters; a shorter one could be an ordinary word. */
const SHORTEST_HIDDEN = 6
const LONGEST_HIDDEN = 8192

const BASE64 = /[A-Za-z0-9+/_-]{16,}={0,2}/g
const PERCENT = /[\w.~%+&=;:/?@!$'()*,-]*%[0-9a-f]{2}[\w.~%+&=;:/?@!$'()*,-]*/gi
/** `["authorization", "…"]` within a text that is not JSON as a whole, also in quoted JSON, where its quotes have backslashes. */
const PAIR = /(\[\s*(\\*)"([\w-]{2,64})\2"\s*,\s*\2")((?:(?!\2").)*)(\2"\s*\])/g
/** A text of printable characters only. */
const WRITTEN = /^[\t\n\r\x20-\x7e\u00a0-\ud7ff\ue000-\ufffc]+$/

/** A parsed log line; a line that is not JSON has no fields. */
export interface LogLine {
  readonly text: string
  readonly fields?: Readonly<Record<string, unknown>>
}

/**
 * Removes secrets from the contents of a bundle: values that plugins registered, values with secret names in the environment and
 * the configuration of the daemon, and texts with the form of a secret, also inside JSON text, base64 and URLs.
 */
export class Scrubber {
  readonly #own = new SecretMatcher()
  readonly #hidden = new Set<string>()

  /** @param known the values that plugins registered; absent without a running daemon */
  constructor(private readonly known: Pick<Redact, 'text' | 'stream'> | undefined) {}

  /** Hides a value everywhere. */
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

  /** Hides the values of data, such as a configuration, whose member names suggest a secret. */
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

  /** Data without secrets: redacts texts, values of members with secret names, and member names themselves. */
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

  /** Redacts log lines. A value that is split over two lines of one source is hidden in both. */
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

  /** In a header pair such as `["authorization", "…"]` or arguments such as `["--token", "…"]`, redacts the item after the name. */
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

  /** Redacts a text that is JSON as a whole by member names. */
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

/** Whether an object such as `{ "name": "authorization", "value": "…" }` holds the value of a secret name. */
function pairOf(value: object): boolean {
  const { name, key, header, value: held } = value as Readonly<Record<string, unknown>>
  const named = [name, key, header].find(text => typeof text === 'string')
  return typeof held === 'string' && typeof named === 'string' && isSecretName(named)
}

function decodedPercent(token: string): string | undefined {
  try {
    return decodeURIComponent(token.replaceAll('+', ' '))
  } catch {
    // Not UTF-8, or a stray percent sign: decode each sequence on its own.
    return token.replace(/(?:%[0-9a-f]{2})+/gi, part => Buffer.from(part.replaceAll('%', ''), 'hex').toString('latin1'))
  }
}

/** Passes the texts of each source through one stream, to find values that continue in the next text. */
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
    // Text held back from the previous line: unchanged, or redacted together with the start of this line.
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

/** If a line ends within the value of a secret name, redacts the rest of it at the start of the source's next line. */
function openEnded(texts: string[], sources: readonly string[]): void {
  const last = new Map<string, number>()
  for (const [n, source] of sources.entries()) {
    const before = texts[last.get(source) ?? -1]
    const name = before === undefined ? undefined : OPEN_END.exec(before.slice(-400))?.[1]
    if (name !== undefined && isSecretName(name)) texts[n] = (texts[n] as string).replace(FIRST_WORD, REDACTED)
    last.set(source, n)
  }
}

/** The first word of a text, unless it is itself the name of a value. */
// Does not match the start of JSON: without its brace, it would not be searched by member names.
const FIRST_WORD = /^(?![[{])[^\s"',;=:]+(?![^\s"',;=:]|["']?\s*[=:])/
const OPEN_END = /([A-Za-z][\w-]{1,63})\\*["']?\s*[=:]\s*\\*["']?[^\s"',;]*$/
