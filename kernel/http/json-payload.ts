import { Readable } from 'node:stream'
import { turn } from '../turn.js'

/** Characters of a slice: made in well below a millisecond. */
const SLICE = 64 * 1024
/** Entries from which on a list is written in slices. */
const LONG = 256

/** A reply as `JSON.stringify` has it; one with a long list comes in slices, so that it neither holds the event loop nor fills the memory. */
export function jsonPayload(body: unknown): string | Readable {
  const members = typeof body === 'object' && body !== null && !Array.isArray(body) ? Object.entries(body) : []
  return members.some(([, member]) => isLong(member)) ? Readable.from(slices(members)) : JSON.stringify(body)
}

const isLong = (member: unknown): member is readonly unknown[] => Array.isArray(member) && member.length >= LONG

async function* slices(members: readonly [string, unknown][]): AsyncGenerator<string> {
  let before = '{'
  for (const [name, member] of members) {
    if (member === undefined) continue
    yield `${before}${JSON.stringify(name)}:`
    if (isLong(member)) yield* listSlices(member)
    else yield JSON.stringify(member)
    before = ','
  }
  yield '}'
}

async function* listSlices(list: readonly unknown[]): AsyncGenerator<string> {
  let slice = ''
  let before = '['
  for (const item of list) {
    slice += before + (JSON.stringify(item) ?? 'null')
    before = ','
    if (slice.length < SLICE) continue
    yield slice
    slice = ''
    await turn()
  }
  yield `${slice}]`
}
