// Replaces `uvu` and `uvu/assert` in tests: identical, but a test without assertions fails, and the runner is told which test
// runs, to name one that hangs.
import * as uvu from 'uvu'
import * as real from 'uvu/assert'

/** Assertions made in this process. */
let made = 0

const known = new Map()

/** Wraps a function and its members, such as `is`, `is.not` and `not.equal`, to count calls. */
function counting(value) {
  if (typeof value !== 'function') return value
  if (known.has(value)) return known.get(value)
  const counted = (...args) => {
    made++
    return value(...args)
  }
  // Stored before its members, because they are circular: `is.not` is `not`, which has `is`.
  known.set(value, counted)
  for (const [name, more] of Object.entries(value)) counted[name] = counting(more)
  return counted
}

const { Assertion, ...functions } = real

export { Assertion }
export const { equal, fixture, instance, is, match, not, ok, snapshot, throws, type, unreachable } = Object.fromEntries(
  Object.entries(functions).map(([name, value]) => [name, counting(value)]),
)

/** Registers a test that fails if it made no assertion. Waiting for a state counts only if it is asserted. */
const asserting = register => (name, handler) =>
  register(name, async context => {
    const before = made
    process.send?.({ test: name })
    try {
      await handler(context)
    } finally {
      process.send?.({})
    }
    if (made === before) throw new Error('it asserts nothing')
  })

function suiteOf(original) {
  const tested = asserting(original)
  return Object.assign(tested, original, { only: asserting(original.only) })
}

export const test = suiteOf(uvu.test)
export const suite = (...args) => suiteOf(uvu.suite(...args))
export const { exec } = uvu
