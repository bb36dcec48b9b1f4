import { clip } from '../../../kernel/kit/text.js'

/** Minimum characters of a form. */
const SHORTEST = 4
/** Maximum characters of a piece: a longer value is hidden in pieces, which overlap so that there is no gap. */
const PIECE = 512
const OVERLAP = 16
/**
 * Maximum characters of a form: each character of a piece may become three bytes of UTF-8, and each byte six characters, as `,
 * 0x7a`.
 */
export const LONGEST_FORM = 18 * PIECE
/** A line that is hidden separately from 32 characters on: programs print keys of many lines line by line. */
const LINE = /^\S{32,}$/

/**
 * A text normalized for comparison: in lower case, with one alphabet of base64. So one form matches encodings that differ only in
 * that (`%2F` and `%2f`, hex in either case); the length stays.
 */
export function folded(text: string): string {
  // Lower case may change the length of characters outside of ASCII.
  const lower = isAscii(text) ? text.toLowerCase() : text.replace(/[A-Z]+/g, capitals => capitals.toLowerCase())
  return lower.replaceAll('-', '+').replaceAll('_', '/')
}

/** Encodings whose digits programs break into lines and groups. */
export type Code = 'base64' | 'hex'

/**
 * All forms of a checked value that are searched for, folded, each with its encoding: raw, base64, hex, URL-encoded and
 * JSON-escaped.
 */
export function secretForms(value: string): ReadonlyMap<string, Code | undefined> {
  const forms = new Map<string, Code | undefined>()
  const add = (form: string, code?: Code) => {
    const text = folded(form)
    if (form.length >= SHORTEST) forms.set(text, code ?? forms.get(text))
  }
  for (const piece of piecesOf(value)) {
    forms.set(folded(piece), undefined)
    const bytes = Buffer.from(`\0\0${piece}`)
    add(bytes.toString('hex', 2), 'hex')
    for (const before of [0, 1, 2]) add(alignedBase64(bytes, before), 'base64')
    if (!/^[\w.~-]*$/.test(piece)) for (const form of escapedForms(piece, bytes.subarray(2))) add(form)
  }
  return forms
}

/**
 * The base64 of a value after `before` bytes (modulo 3), without the digits at its ends that depend on the surrounding bytes.
 * @param bytes two zero bytes, then the value
 */
function alignedBase64(bytes: Buffer, before: number): string {
  const digits = Math.floor(((bytes.length - 2 + before) * 8) / 6)
  return bytes.toString('base64', 2 - before).slice(before === 0 ? 0 : before + 1, digits)
}

/** A value as escaped in JSON and URLs, where that differs from the value; encoders differ in the characters that they escape. */
function escapedForms(value: string, bytes: Buffer): string[] {
  const json = JSON.stringify(value).slice(1, -1)
  const unicode = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  const percent = (kept: RegExp) =>
    [...bytes]
      .map(byte => {
        const character = String.fromCharCode(byte)
        return kept.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
      })
      .join('')
  const component = percent(/[\w.~!'()*-]/)
  return [
    json,
    // JSON within JSON, as in arguments of a tool or a text that an error repeats.
    JSON.stringify(json).slice(1, -1),
    json.replaceAll('/', '\\/'),
    json.replace(/[^ -~]/g, unicode),
    json.replace(/[<>&]|[^ -~]/g, unicode),
    component,
    percent(/[\w.~-]/),
    percent(/[\w.~/-]/),
    percent(/[\w.*-]/).replaceAll('%20', '+'),
  ]
}

function* piecesOf(value: string): Generator<string> {
  for (let start = 0; start === 0 || start + OVERLAP < value.length; start += PIECE - OVERLAP)
    yield value.slice(start, start + PIECE)
  if (!value.includes('\n')) return
  for (const line of value.split('\n')) if (LINE.test(line.trim())) yield clip(line.trim(), PIECE)
}

const isAscii = (text: string): boolean => !/[\u0080-\uffff]/.test(text)
