import type { Chance } from '../library/chance.js'

/** In the middle of every canary: what is found of a canary is found by it. */
const MARK = 'cANary7Q9zX4'
/** The same of the control, which is registered nowhere: the search has to find it where canaries are told. */
const CONTROL = 'cONtrol3W8yK6'

/** How programs write a value. The code under test makes none of them. */
export const encodings: Readonly<Record<string, (value: string, chance: Chance) => string>> = {
  raw: value => value,
  base64: (value, chance) => Buffer.from('{"x'.slice(0, chance.int(3)) + value).toString('base64'),
  hex: value => Buffer.from(value).toString('hex'),
  url: value => encodeURIComponent(value),
  json: value => JSON.stringify(value).slice(1, -1),
}

/** A value that no other has, with characters that URLs and JSON escape. */
export function canary(chance: Chance, at: number, mark = MARK): string {
  const letters = Array.from({ length: 8 }, () => 'abcdefghjkmnpqrstuvwxyz'[chance.int(23)]).join('')
  return `${letters}/"${mark}+${at.toString(36)} ö`
}

/** A value that looks like a canary and is no secret. */
export const control = (chance: Chance, at: number): string => canary(chance, at, CONTROL)

/** A text in one to so many pieces, cut anywhere. */
export function inPieces(text: string, chance: Chance, most: number): string[] {
  const cuts = Array.from({ length: chance.int(most) }, () => chance.int(text.length)).sort((a, b) => a - b)
  return [0, ...cuts].map((cut, i) => text.slice(cut, cuts[i] ?? text.length)).filter(piece => piece !== '')
}

/** The mark as each encoding has it, without the digits of base64 that depend on what stands around it. */
const signsOf = (mark: string): readonly string[] =>
  [
    mark,
    Buffer.from(mark).toString('hex'),
    ...[0, 1, 2].map(before => {
      const digits = Buffer.from('\0'.repeat(before) + mark)
        .toString('base64')
        .replace(/=+$/, '')
      return digits.slice(before === 0 ? 0 : before + 1, -1)
    }),
  ].map(sign => sign.toLowerCase())
const signs = signsOf(MARK)
const controlSigns = signsOf(CONTROL)

/** Where in a text a canary stands: what is around it; undefined when there is none. */
export const leakIn = (text: string): string | undefined => around(text, signs)

/** The same of the control. */
export const controlIn = (text: string): string | undefined => around(text, controlSigns)

function around(text: string, all: readonly string[]): string | undefined {
  const folded = text.toLowerCase()
  const at = Math.min(...all.map(sign => folded.indexOf(sign)).filter(found => found >= 0))
  return Number.isFinite(at) ? JSON.stringify(text.slice(Math.max(0, at - 120), at + 60)) : undefined
}
