import { checkedSecret } from '../../../kernel/kit/secret-set.js'
import { clip } from '../../../kernel/kit/text.js'
import type { RedactedStream, SecretOptions } from '../../../kernel/plugin.js'
import { type Code, folded, secretForms } from './forms.js'
import { CONTEXT, joinedDigits } from './spaced.js'

/** Characters in the window of the rolling hash: 32 bits, shifted by 4 for each character. */
const WINDOW = 8
/** Characters of a form's beginning that fit into one number, 7 bits each. */
const HEAD = 7
/** Bits of the filter per form: at most one in so many windows of ordinary text causes a lookup. */
const BITS_A_FORM = 64

/** The contribution of each character to the hash, by its lower byte, which is good enough for a filter. */
const GEAR = Int32Array.from({ length: 256 }, (_, code) => {
  const bits = Math.imul((code < 128 ? folded(String.fromCharCode(code)).charCodeAt(0) : code) + 1, 0x9e3779b1)
  return Math.imul(bits ^ (bits >>> 15), 0x85ebca6b) ^ (bits >>> 13)
})

/** A folded character in 7 bits; all characters outside of ASCII are equal, and none is 0. */
const LETTERS = Uint8Array.from({ length: 128 }, (_, code) =>
  Math.max(1, folded(String.fromCharCode(code)).charCodeAt(0)),
)

/** Minimum digits of a form that is searched for in broken groups: ordinary text contains shorter ones. */
const SHORTEST_BROKEN = 12

/** An occurrence of a form in a text. */
interface Hit {
  readonly start: number
  readonly end: number
  readonly form: Form
}

interface Form {
  readonly text: string
  readonly code: Code | undefined
  /** One name for each value with this form. */
  readonly names: (string | undefined)[]
}

/** The first index of a sorted list from which `isAfter` holds, or the length of the list. */
function firstIndex(length: number, isAfter: (at: number) => boolean): number {
  let low = 0
  for (let high = length; low < high; ) {
    const middle = (low + high) >>> 1
    if (isAfter(middle)) high = middle
    else low = middle + 1
  }
  return low
}

/** Forms, found by bisection regardless of shared prefixes. They are sorted on use. */
class Forms {
  readonly #forms: Form[] = []
  #isSorted = true
  longest = 0

  get size(): number {
    return this.#forms.length
  }

  add(form: Form): void {
    this.#isSorted = this.#forms.push(form) === 1
    this.longest = Math.max(this.longest, form.text.length)
  }

  delete({ text }: Form): void {
    this.#forms.splice(this.#after(text) - 1, 1)
  }

  /**
   * The longest form that is a prefix of a text. Any such form is also a prefix of the common part with a form that sorts before
   * the text.
   */
  longestIn(text: string): Form | undefined {
    for (let rest = text; rest !== ''; ) {
      const at = this.#after(rest) - 1
      const form = this.#forms[at]
      if (!form || rest.startsWith(form.text)) return form
      let common = 0
      while (form.text[common] === rest[common]) common++
      rest = rest.slice(0, common)
    }
    return undefined
  }

  /** Whether a longer form begins with this text. */
  extends(text: string): boolean {
    return this.#forms[this.#after(text)]?.text.startsWith(text) ?? false
  }

  /** Index of the first form that sorts after a text. */
  #after(text: string): number {
    if (!this.#isSorted) this.#forms.sort((a, b) => (a.text < b.text ? -1 : 1))
    this.#isSorted = true
    return firstIndex(this.#forms.length, at => (this.#forms[at] as Form).text > text)
  }
}

/**
 * Finds many values in a text in one pass. A hash of the last eight characters rolls along; a bit filter shows which hashes may
 * begin a form, and only then are forms compared. So ordinary text costs a few operations per character, regardless of the number
 * of values. Values can be added and removed one by one, where an automaton would have to be rebuilt.
 */
export class SecretMatcher {
  /** Forms of at least a window, by the hash of their first window. */
  readonly #byHash = new Map<number, Forms>()
  readonly #short = new Forms()
  readonly #forms = new Map<string, Form>()
  #filter = new Uint8Array(0)
  #shift = 0
  /** First characters of all forms as ascending numbers; made when a stream needs them. */
  #heads: Float64Array | undefined

  /** Number of forms. */
  get size(): number {
    return this.#forms.size
  }

  /** Hides a value until the returned function is called. @throws Fault `secret_too_short`, `secret_too_long` */
  add(value: string, options: SecretOptions = {}): () => void {
    const name = options.name && clip(options.name.replace(/[^\w.:/@-]/g, '_'), 128)
    let forms = Array.from(secretForms(checkedSecret(value, options)), ([text, code]) => this.#known(text, code, name))
    return () => {
      for (const form of forms) this.#forget(form, name)
      forms = []
    }
  }

  /** A text with each value replaced by `[redacted:name]`; overlapping values become one. */
  replace(text: string): string {
    return this.#forms.size === 0 ? text : this.#pass(text, 0, true).out
  }

  stream(): RedactedStream {
    /** The held back text, after context that is searched again to recognize broken digits. */
    let rest = ''
    /** Characters of `rest` that were already written, unchanged or replaced. */
    let covered = 0
    let context = 0
    const next = (text: string, isLast: boolean) => {
      if (this.#forms.size === 0) {
        const out = text.slice(covered)
        rest = ''
        covered = context = 0
        return out
      }
      const pass = this.#pass(text, covered, isLast)
      context = isLast ? 0 : Math.min(pass.hold, CONTEXT)
      rest = text.slice(pass.hold - context)
      covered = context + pass.covered
      return pass.out
    }
    return {
      push: piece => next(rest + piece, false),
      end: () => next(rest, true),
      get held() {
        return rest.length - context
      },
    }
  }

  /**
   * Copies a text without its values. If the text continues (`isLast` is false), the part after `hold` must be passed again with
   * the next piece; `covered` characters of it belong to a value whose replacement was already written.
   */
  #pass(text: string, covered: number, isLast: boolean): { out: string; hold: number; covered: number } {
    let { hits, hold } = this.#search(text, isLast)
    for (const { code, text: joined, placeOf } of joinedDigits(text, isLast)) {
      const broken = this.#search(joined, isLast, code)
      hold = Math.min(hold, placeOf(broken.hold))
      if (broken.hits.length === 0) continue
      const placed = broken.hits.map(hit => ({
        start: placeOf(hit.start),
        end: endOfDigits(text, placeOf(hit.start), placeOf(hit.end - 1) + 1),
        form: hit.form,
      }))
      hits = [...hits, ...placed].sort((a, b) => a.start - b.start || b.end - a.end)
    }
    let out = ''
    let copied = covered
    for (const { start, end, form } of hits) {
      if (start >= hold) break
      if (start >= copied) out += text.slice(copied, start) + labelOf(form)
      copied = Math.max(copied, end)
    }
    if (copied < hold) out = copied === 0 && hold === text.length ? text : out + text.slice(copied, hold)
    return { out, hold, covered: Math.max(0, copied - hold) }
  }

  /**
   * Finds forms in a text, optionally only those of one encoding.
   * @returns hits in ascending order; `hold` is where the text may begin an unfinished form, else its length
   */
  #search(text: string, isLast: boolean, code?: Code): { hits: readonly Hit[]; hold: number } {
    const { length } = text
    const [filter, shift, bytes] = [this.#filter, this.#shift, bytesOf(text)]
    // From this index on the hash filter is not enough: it misses forms shorter than its window, which may be anywhere, and
    // forms that begin in this text and end in the next piece.
    const searchStart = this.#short.size > 0 ? 0 : isLast ? length : Math.max(0, length - HEAD)
    const filtered = searchStart + WINDOW - 1
    const hits: Hit[] = []
    let hash = 0
    for (let at = 0; at < WINDOW - 1 && at < length; at++) hash = rolled(hash, bytes[at] as number)
    for (let start = 0, end = WINDOW - 1; start < length; start++, end++) {
      let forms: Forms | undefined
      for (; end < length; end++) {
        hash = rolled(hash, bytes[end] as number)
        const slot = hash >>> shift
        if (end >= filtered || ((filter[slot >>> 3] as number) & (1 << (slot & 7))) !== 0) break
      }
      start = end - WINDOW + 1
      if (end < length) forms = this.#byHash.get(hash)
      if (forms === undefined && start < searchStart) continue
      if (!isLast && this.#mayGoOn(text, start, forms)) return { hits, hold: start }
      const form = this.#longestAt(text, start, forms)
      if (!form || (code && (form.code !== code || form.text.length < SHORTEST_BROKEN))) continue
      hits.push({ start, end: start + form.text.length, form })
    }
    return { hits, hold: length }
  }

  #longestAt(text: string, start: number, forms: Forms | undefined): Form | undefined {
    const long = forms?.longestIn(folded(text.slice(start, start + forms.longest)))
    if (long || this.#short.size === 0) return long
    return this.#short.longestIn(folded(text.slice(start, start + this.#short.longest)))
  }

  /** Whether the text from `start` on may be the beginning of an unfinished form. */
  #mayGoOn(text: string, start: number, forms: Forms | undefined): boolean {
    const left = text.length - start
    if (left <= HEAD) return this.#begins(text.slice(start))
    return forms !== undefined && left < forms.longest && forms.extends(folded(text.slice(start)))
  }

  /** Whether a longer form begins with this text of at most {@link HEAD} characters. */
  #begins(text: string): boolean {
    this.#heads ??= Float64Array.from(this.#forms.keys(), headOf).sort()
    const heads = this.#heads
    const first = headOf(text)
    // A form of exactly the text's length has the same number. For a text of full head length, longer forms have it too.
    const least = text.length === HEAD ? first : first + 1
    const found = heads[firstIndex(heads.length, at => (heads[at] as number) >= least)]
    return found !== undefined && found < first + 128 ** (HEAD - text.length)
  }

  #known(text: string, code: Code | undefined, name: string | undefined): Form {
    const known = this.#forms.get(text)
    if (known) {
      known.names.push(name)
      return known
    }
    const form = { text, code, names: [name] }
    this.#forms.set(text, form)
    this.#heads = undefined
    if (text.length < WINDOW) this.#short.add(form)
    else this.#index(hashOf(text), form)
    return form
  }

  #index(hash: number, form: Form): void {
    const forms = this.#byHash.get(hash) ?? new Forms()
    this.#byHash.set(hash, forms)
    forms.add(form)
    if (this.#byHash.size * BITS_A_FORM > this.#filter.length * 8) this.#grow()
    else this.#note(hash)
  }

  /** Removes a form when its last value is gone. Its bits stay in the filter until that grows, and only cost a lookup. */
  #forget(form: Form, name: string | undefined): void {
    const { names, text } = form
    names.splice(names.indexOf(name), 1)
    if (names.length > 0) return
    this.#forms.delete(text)
    this.#heads = undefined
    const hash = text.length < WINDOW ? undefined : hashOf(text)
    const forms = hash === undefined ? this.#short : (this.#byHash.get(hash) as Forms)
    forms.delete(form)
    if (hash !== undefined && forms.size === 0) this.#byHash.delete(hash)
  }

  #grow(): void {
    this.#filter = new Uint8Array(Math.max(1024, this.#filter.length * 4))
    this.#shift = 32 - Math.log2(this.#filter.length * 8)
    for (const hash of this.#byHash.keys()) this.#note(hash)
  }

  #note(hash: number): void {
    const slot = hash >>> this.#shift
    this.#filter[slot >>> 3] = (this.#filter[slot >>> 3] as number) | (1 << (slot & 7))
  }
}

/** Reused for all texts but the longest. */
const BYTES = Buffer.alloc(64 * 1024)

/** The lower bytes of all characters, valid until the next call: a loop reads them faster than the characters of a string. */
function bytesOf(text: string): Uint8Array {
  if (text.length > BYTES.length) return Buffer.from(text, 'latin1')
  BYTES.write(text, 'latin1')
  return BYTES
}

/** The hash extended by one character; the one before the window is shifted out. */
const rolled = (hash: number, byte: number): number => ((hash << 4) + (GEAR[byte] as number)) | 0

const hashOf = (text: string): number => bytesOf(text).subarray(0, WINDOW).reduce(rolled, 0)

/** The first characters as a number with the same order; a missing character is 0. */
function headOf(text: string): number {
  let head = 0
  for (let at = 0; at < HEAD; at++)
    head = head * 128 + (at < text.length ? LETTERS[Math.min(127, text.charCodeAt(at))]! : 0)
  return head
}

/** The end of digits in a text; in a dump including the characters that its last line repeats. */
function endOfDigits(text: string, start: number, end: number): number {
  if (!/\n[0-9a-f]{4,16}:? /i.test(text.slice(start, end))) return end
  const lineEnd = text.indexOf('\n', end)
  return lineEnd === -1 ? text.length : lineEnd
}

const labelOf = ({ names: [name] }: Form): string => (name === undefined ? '[redacted]' : `[redacted:${name}]`)
