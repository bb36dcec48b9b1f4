import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type Comparison,
  FILTER_FIELDS,
  FILTER_LIMITS,
  type FilterFacts,
  type FilterField,
  isProblem,
  matches,
  parseFilter,
  SEVERITIES,
} from '../../../../plugins/reach/notifications/presets/filter.js'

/** A source of chance that gives the same numbers each time. */
function chance(seed: number) {
  let state = seed
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
  return {
    next,
    below: (n: number) => Math.floor(next() * n),
    of: <T>(all: readonly T[]) => all[Math.floor(next() * all.length)] as T,
  }
}

const VALUES: Readonly<Record<FilterField, readonly string[]>> = {
  severity: SEVERITIES,
  workspace: ['docs', 'ws_0011', 'a b', 'AND'],
  agent: ['ada', 'code reviewer', 'x"y\\z', 'or'],
  event_type: ['task.run_failed', 'provider.auth_required'],
  provider: ['anthropic', 'openai'],
  task: ['task_1', 'task_2'],
  run: ['run_1', 'run_2'],
}

/** The oracle: an expression as text, and what it means for an event by a function that knows nothing of the parser. */
interface Expression {
  readonly text: string
  readonly holds: (facts: FilterFacts) => boolean
}

const rank = (severity: string) => (SEVERITIES as readonly string[]).indexOf(severity)
const COMPARE: Readonly<Record<Comparison, (a: number, b: number) => boolean>> = {
  '=': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '>=': (a, b) => a >= b,
  '>': (a, b) => a > b,
  '<=': (a, b) => a <= b,
  '<': (a, b) => a < b,
}

function comparison({ of, next }: ReturnType<typeof chance>): Expression {
  const field = of(FILTER_FIELDS)
  const operator = of(field === 'severity' ? (Object.keys(COMPARE) as Comparison[]) : (['=', '!='] as const))
  const value = of(VALUES[field])
  const isPlain = /^[A-Za-z0-9_.]+$/.test(value)
  const written = isPlain && next() < 0.7 ? value : `"${value.replace(/["\\]/g, '\\$&')}"`
  const space = next() < 0.5 ? ' ' : ''
  return {
    text: `${field}${space}${operator}${space}${written}`,
    holds: facts => {
      const fact = facts[field]
      if (field === 'severity') return COMPARE[operator](rank(`${fact}`), rank(value))
      const has = typeof fact === 'string' ? fact === value : (fact ?? []).includes(value)
      return operator === '=' ? has : !has
    },
  }
}

/** @param level 0: parts of OR, 1: parts of AND, 2: what needs no parentheses */
function expression(random: ReturnType<typeof chance>, depth: number, level = 0): Expression {
  const { below, next, of } = random
  if (depth === 0 || next() < 0.3) return comparison(random)
  const isAny = next() < 0.5
  const parts = Array.from({ length: 2 + below(2) }, () => expression(random, depth - 1, isAny ? 1 : 2))
  const text = parts.map(part => part.text).join(isAny ? of([' OR ', ' or ']) : of([' AND ', '  and ']))
  const holds = (facts: FilterFacts) =>
    isAny ? parts.some(part => part.holds(facts)) : parts.every(part => part.holds(facts))
  const needsParentheses = isAny ? level > 0 : level > 1
  return { text: needsParentheses || next() < 0.2 ? `( ${text} )` : text, holds }
}

function facts(random: ReturnType<typeof chance>): FilterFacts {
  const { of, next } = random
  const some = (field: FilterField) => (next() < 0.25 ? undefined : of(VALUES[field]))
  return {
    severity: of(SEVERITIES),
    workspace: next() < 0.3 ? undefined : ['ws_0011', of(VALUES.workspace)],
    ...Object.fromEntries(FILTER_FIELDS.slice(2).map(field => [field, some(field)])),
  }
}

test('20,000 random expressions evaluate like an oracle', () => {
  const random = chance(7)
  let held = 0
  for (let n = 0; n < 20_000; n++) {
    const { text, holds } = expression(random, 3)
    const read = parseFilter(text)
    if (isProblem(read)) throw new Error(`${text}: ${read.problem} at ${read.position}`)
    for (let m = 0; m < 3; m++) {
      const event = facts(random)
      const wanted = holds(event)
      if (matches(read, event) !== wanted) throw new Error(`${text} of ${JSON.stringify(event)} is not ${wanted}`)
      if (wanted) held++
    }
  }
  assert.ok(held > 10_000 && held < 50_000, `${held} held`)
})

test('a malformed expression is refused with its position, without an exception', () => {
  const random = chance(11)
  let refused = 0
  for (let n = 0; n < 20_000; n++) {
    const { text } = expression(random, 2)
    const at = random.below(text.length)
    const damaged =
      text.slice(0, at) +
      random.of(['(', ')', '"', '=', '!', ' ', '\u0000', '🙂', 'AND ', '']) +
      text.slice(at + random.below(3))
    const read = parseFilter(damaged)
    if (!isProblem(read)) continue
    refused++
    assert.ok(read.position >= 1 && read.position <= damaged.length + 1, `${damaged}: ${read.position}`)
  }
  assert.ok(refused > 5000, `${refused} refused`)
})

const PROBLEMS: readonly (readonly [string, number, RegExp])[] = [
  ['severity', 9, /one of = !=/],
  ['severity >= ', 13, /a value/],
  ['severity ! error', 10, /no meaning/],
  ['(severity = error', 18, /the \) of the \( at 1/],
  ['severity = error)', 17, /AND, OR or the end/],
  ['severity = error task = a', 18, /AND, OR or the end/],
  ['severity = error AND', 21, /a field/],
  ['OR severity = error', 1, /not a field/],
  ['agent = "ada', 9, /not closed/],
  ['agent = ada AND colour = red', 17, /"colour" is not a field/],
  ['agent >= ada', 7, /only severity has an order/],
  ['severity = loud', 12, /info < warning < error < critical/],
]

for (const [text, position, problem] of PROBLEMS)
  test(`the filter ${text} is refused at ${position} with ${problem.source}`, () => {
    const read = parseFilter(text)
    if (!isProblem(read)) throw new Error(`${text} was read`)
    assert.is(read.position, position)
    assert.match(read.problem, problem)
  })

test('an empty filter matches every event', () => {
  for (const text of ['', '   \n']) assert.is(matches(parseFilter(text) as never, {}), true)
})

test('length, comparisons and depth are bounded', () => {
  const problem = (text: string) => {
    const read = parseFilter(text)
    return isProblem(read) ? read.problem : undefined
  }
  const many = (n: number) => Array.from({ length: n }, () => 'task=a').join(' OR ')
  const deep = (n: number) => `${'('.repeat(n)}task=a${')'.repeat(n)}`
  assert.is(problem(many(FILTER_LIMITS.comparisons)), undefined)
  assert.match(problem(many(FILTER_LIMITS.comparisons + 1)) ?? '', /at most 100 comparisons/)
  assert.is(problem(deep(FILTER_LIMITS.depth)), undefined)
  assert.match(problem(deep(FILTER_LIMITS.depth + 1)) ?? '', /nested more than 20 levels deep/)
  assert.match(problem(`task = ${'x'.repeat(FILTER_LIMITS.characters)}`) ?? '', /at most 4096 characters/)
  assert.match(problem('('.repeat(4000)) ?? '', /parentheses/)
})

test.run()
