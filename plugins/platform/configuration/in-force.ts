import { canonicalJson } from '../../../kernel/kit/canonical.js'
import type { Setting } from '../../../kernel/plugin.js'

/** Canonical JSON of decoded values, which never change. */
const texts = new WeakMap<object, string>()

/** Canonical JSON of a value; undefined for undefined. */
export function textOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const text = texts.get(value) ?? canonicalJson(value)
  texts.set(value, text)
  return text
}

const orders = new WeakMap<readonly Setting[], readonly Setting[]>()

/** Settings by path, sorted once for a list: each change asks for hashes of all values. */
export function inOrder(known: readonly Setting[]): readonly Setting[] {
  const order = orders.get(known) ?? [...known].sort((a, b) => (a.path < b.path ? -1 : 1))
  orders.set(known, order)
  return order
}
