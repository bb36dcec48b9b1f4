// What tests import as `uvu` and `uvu/assert`: the same, and a test that asserts nothing fails.
import * as uvu from 'uvu'
import * as real from 'uvu/assert'

/** Assertions that were made in this process. */
let made = 0

const known = new Map()

/** The function, and those that hang on it, counting their calls: `is`, `is.not`, `not.equal`. */
function counting(value) {
  if (typeof value !== 'function') return value
  if (known.has(value)) return known.get(value)
  const counted = (...args) => {
    made++
    return value(...args)
  }
  // `is.not` is `not`, which has `is`.
  known.set(value, counted)
  for (const [name, more] of Object.entries(value)) counted[name] = counting(more)
  return counted
}

const { Assertion, ...functions } = real

export { Assertion }
export const { equal, fixture, instance, is, match, not, ok, snapshot, throws, type, unreachable } = Object.fromEntries(
  Object.entries(functions).map(([name, value]) => [name, counting(value)]),
)

/** Registers a test that fails when it has run and made no assertion: a wait for a state is one when it is asserted. */
const asserting = register => (name, handler) =>
  register(name, async context => {
    const before = made
    await handler(context)
    if (made === before) throw new Error('it asserts nothing')
  })

function suiteOf(original) {
  const tested = asserting(original)
  return Object.assign(tested, original, { only: asserting(original.only) })
}

export const test = suiteOf(uvu.test)
export const suite = (...args) => suiteOf(uvu.suite(...args))
export const { exec } = uvu
