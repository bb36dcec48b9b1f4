import { Readable } from 'node:stream'
import { turn } from '../clock.js'
import { JsonText } from '../contract/route.js'

/** Characters of a slice, which takes well below a millisecond to make. */
const SLICE = 64 * 1024
/** Minimum number of entries for a list to be written in slices. */
const LONG = 256

type Members = readonly [name: string, value: unknown][]

/**
 * A reply as `JSON.stringify` writes it. One with a long list is written in slices, so that it neither blocks the event loop nor
 * fills the memory.
 */
export function payloadOf(body: unknown): string | Readable {
  const members = typeof body === 'object' && body !== null && !Array.isArray(body) ? Object.entries(body) : []
  if (members.some(([, member]) => Array.isArray(member) && member.length >= LONG))
    return Readable.from(slices(members))
  return members.some(hasTexts) ? [...pieces(members)].join('') : JSON.stringify(body)
}

const hasTexts = ([, member]: Members[0]) => (Array.isArray(member) ? member[0] : member) instanceof JsonText

async function* slices(members: Members): AsyncGenerator<string> {
  let slice = ''
  for (const piece of pieces(members)) {
    slice += piece
    if (slice.length < SLICE) continue
    yield slice
    slice = ''
    await turn()
  }
  yield slice
}

function* pieces(members: Members): Generator<string> {
  let before = '{'
  for (const [name, member] of members) {
    const head = `${before}${JSON.stringify(name)}:`
    if (Array.isArray(member)) {
      yield `${head}[`
      for (const [i, item] of member.entries()) yield `${i > 0 ? ',' : ''}${text(item) ?? 'null'}`
      yield ']'
    } else {
      const value = text(member)
      if (value === undefined) continue
      yield head + value
    }
    before = ','
  }
  yield before === '{' ? '{}' : '}'
}

const text = (value: unknown): string | undefined => (value instanceof JsonText ? value.text : JSON.stringify(value))
