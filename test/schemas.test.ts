import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { toJsonSchema } from '@valibot/to-json-schema'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { queryBoolean, queryInteger, Timestamp } from '../schemas/kernel/common.js'
import { ErrorBody } from '../schemas/kernel/error.js'
import { ParticipationRequest } from '../schemas/network.js'
import { PromptBody } from '../schemas/sessions.js'
import {
  contractRoutes,
  findRoute,
  type JsonSchema,
  resolveContract,
  resolveOwn,
  schemaFacts,
} from './harness/contract.js'
import { routeSchemas, wholeAreas } from './harness/contract-schemas.js'

const convert = (schema: v.GenericSchema, typeMode: 'input' | 'output' = 'output') =>
  toJsonSchema(schema, {
    typeMode,
    target: 'draft-2020-12',
    errorMode: 'throw',
    ignoreActions: ['check', 'trim'],
  }) as JsonSchema

/** The facts of a schema of ours, which may refer to itself. */
const ownFacts = (schema: v.GenericSchema, mode: 'input' | 'output' = 'output') => {
  const converted = convert(schema, mode)
  return schemaFacts(converted, resolveOwn(converted))
}

const isSchema = (value: unknown): value is v.GenericSchema =>
  typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'schema'

async function exportedSchemas(): Promise<Map<string, v.GenericSchema>> {
  const root = fileURLToPath(new URL('../schemas', import.meta.url))
  const found = new Map<string, v.GenericSchema>()
  for (const entry of fs.readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    if (!entry.endsWith('.ts')) continue
    const module: Record<string, unknown> = await import(pathToFileURL(path.join(root, entry)).href)
    for (const [name, value] of Object.entries(module)) if (isSchema(value)) found.set(`${entry} ${name}`, value)
  }
  return found
}

const schemas = await exportedSchemas()
const lines = (list: Iterable<string>) => [...list].join('\n')
const without = (a: Set<string>, b: Set<string>) => [...a].filter(fact => !b.has(fact))

test('every exported schema converts to JSON Schema that a validator compiles', () => {
  const ajv = new Ajv2020({ strict: false, code: { optimize: false } })
  formats.default(ajv)
  assert.ok(schemas.size > 200, `only ${schemas.size} schemas found`)
  const wrong: string[] = []
  for (const [name, schema] of schemas)
    for (const mode of ['input', 'output'] as const)
      try {
        ajv.compile(convert(schema, mode))
      } catch (error) {
        wrong.push(`${name}, ${mode}: ${String(error)}`)
      }
  assert.is(lines(wrong), '')
})

test('complete areas have schemas for every route', () => {
  const lacking = contractRoutes
    .filter(({ area, path }) => area in wholeAreas && !wholeAreas[area]?.test(path))
    .map(({ method, path }) => `${method} ${path}`)
    .filter(name => !routeSchemas[name])
  assert.is(lines(lacking), '')
})

const routeOf = (name: string) => findRoute(...(name.split(' ') as [string, string]))

for (const [name, mine] of Object.entries(routeSchemas)) {
  test(`${name}: every part has a schema, and no part is outside the contract`, () => {
    const route = routeOf(name)
    assert.ok(route && `${route.method} ${route.path}` === name, 'no such route')
    assert.is(!route.query.length, !mine.query, 'query')
    // A webhook's body is the sender's own.
    if (!name.startsWith('POST /api/webhooks/')) assert.is(!route.body, !mine.body, 'body')
    for (const [status, schema] of Object.entries(route.responses))
      if (status.startsWith('2') && schema) assert.ok(mine.replies?.[Number(status)], status)
    for (const status of Object.keys(mine.replies ?? {})) assert.ok(route.responses[status], `${status} is not there`)
  })

  const { body, query, replies } = mine
  if (body)
    test(`${name}: the body accepts the contract and requires no more`, () => {
      const theirs = schemaFacts(routeOf(name)?.body ?? {}, resolveContract)
      const ours = ownFacts(body, 'input')
      const lacking = without(theirs, ours).filter(fact => !fact.endsWith('!'))
      const required = without(ours, theirs).filter(fact => fact.endsWith('!') && theirs.has(fact.slice(0, -1)))
      assert.is(lines(lacking), '', 'lacks')
      assert.is(lines(required), '', 'requires')
    })

  for (const [status, reply] of Object.entries(replies ?? {}))
    test(`${name}: the reply ${status} has all members of the contract with the same types`, () => {
      const theirs = schemaFacts(routeOf(name)?.responses[status] ?? {}, resolveContract)
      const ours = ownFacts(reply)
      assert.is(lines(without(theirs, ours)), '', 'lacks')
      const wider = without(ours, theirs).filter(fact => {
        const [at = '', type] = fact.split(':')
        return type !== undefined && theirs.has(at)
      })
      assert.is(lines(wider), '', 'may be')
    })

  if (query)
    test(`${name}: the query has every parameter of the contract with its type, values and bounds`, () => {
      const ours = convert(query)
      for (const parameter of routeOf(name)?.query ?? []) {
        const own = ours.properties?.[parameter.name] as Record<string, unknown> | undefined
        assert.ok(own, `${parameter.name} is lacking`)
        assert.is(own.type, parameter.type, parameter.name)
        if (parameter.enum) assert.is(lines(own.enum as string[]), lines(parameter.enum), parameter.name)
        if (parameter.max !== undefined) assert.is(own.maximum, parameter.max, parameter.name)
        if (parameter.min !== undefined) assert.is(own.minimum, parameter.min, parameter.name)
        assert.is(!!ours.required?.includes(parameter.name), parameter.required, parameter.name)
      }
    })
}

/** What matches the patterns that `text` does not. */
const TEXTS: Readonly<Record<string, string>> = {
  '^[A-Za-z0-9_-]{87}$': 'x'.repeat(87),
  '^[A-Za-z0-9_-]{22}$': 'x'.repeat(22),
  '^evt_[0-9a-f]{16}$': 'evt_0123456789abcdef',
  '^(?:0|(?:\\d{1,9}(?:\\.\\d{1,6})?(?:ms|s|m|h|d))+)$': '5m',
  '^(?:[01]\\d|2[0-3]):[0-5]\\d$': '22:00',
  '^[0-9a-f]{64}$': '0'.repeat(64),
}

/** Values that a schema accepts, one for each variant in it; the objects that must be strict are put into `strict`. */
function samples(schema: JsonSchema, strict: WeakSet<object>): unknown[] {
  const variants = schema.anyOf ?? schema.oneOf
  if (variants) return variants.filter(({ type }) => type !== 'null').flatMap(variant => samples(variant, strict))
  // What refers to itself ends there: a list of such is then empty.
  if (schema.$ref) return []
  if (schema.enum) return [schema.enum[0]]
  if (schema.const !== undefined) return [schema.const]
  if (schema.format === 'uri') return ['https://example.com']
  if (schema.pattern !== undefined) return [TEXTS[schema.pattern] ?? 'text']
  if (schema.format === 'date-time') return ['2030-01-31T09:00:00.000Z']
  if (schema.type === 'array') return samples(schema.items ?? {}, strict).map(item => [item])
  if (schema.properties) {
    const members = Object.entries(schema.properties).map(([name, s]) => [name, samples(s, strict)] as const)
    const count = Math.max(1, ...members.map(([, values]) => values.length))
    return Array.from({ length: count }, (_, i) => {
      const sample = Object.fromEntries(members.map(([name, values]) => [name, cloneOf(values, i, strict)]))
      strict.add(sample)
      return sample
    })
  }
  const plain: Record<string, unknown> = { string: 'text', integer: 1, number: 1, boolean: true, object: {} }
  return [plain[String(schema.type)] ?? 'anything']
}

/** The i-th value, the last where there are fewer; not shared between samples, for they are changed in place. */
function cloneOf(values: readonly unknown[], i: number, strict: WeakSet<object>): unknown {
  const copy = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(copy)
    if (typeof value !== 'object' || value === null) return value
    const made = Object.fromEntries(Object.entries(value).map(([k, inner]) => [k, copy(inner)]))
    if (strict.has(value)) strict.add(made)
    return made
  }
  return copy(values[Math.min(i, values.length - 1)])
}

function* objectsIn(value: unknown, at = ''): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [at, value as Record<string, unknown>]
  for (const [name, inner] of Object.entries(value)) yield* objectsIn(inner, `${at}/${name}`)
}

test('bodies refuse an unknown member at every level', () => {
  const bodies = [...schemas].filter(([name]) => name.endsWith('Body') && !name.endsWith('ErrorBody'))
  assert.ok(bodies.length >= 18, `only ${bodies.length} bodies found`)
  let refused = 0
  for (const [name, body] of bodies) {
    const strict = new WeakSet<object>()
    for (const sample of samples(convert(body, 'input'), strict)) {
      const result = v.safeParse(body, sample)
      assert.ok(result.success, `${name} refuses ${JSON.stringify(sample)}: ${result.issues?.[0]?.message}`)
      for (const [at, object] of objectsIn(sample)) {
        if (!strict.has(object)) continue
        object.member_that_nobody_knows = 1
        assert.not(v.safeParse(body, sample).success, `${name} accepts an unknown member at ${at || '/'}`)
        delete object.member_that_nobody_knows
        refused++
      }
    }
  }
  assert.ok(refused > bodies.length, 'no body has a level below the first')
})

for (const text of ['', ' 5', '5 ', '0', '101', '1.5', '1e2', '0x10', 'ten', '9'.repeat(16), 5, ['5']])
  test(`a query integer of 1 to 100 refuses ${JSON.stringify(text)}`, () =>
    assert.not(v.safeParse(queryInteger(1, 100), text).success))

for (const text of ['', 'yes', 'TRUE', true, ['true']])
  test(`a query boolean refuses ${JSON.stringify(text)}`, () => assert.not(v.safeParse(queryBoolean(), text).success))

test('query helpers read strings and have their type in JSON Schema', () => {
  const limit = queryInteger(1, 100)
  assert.is(v.parse(limit, '50'), 50)
  assert.is(v.parse(queryInteger(), '-3'), -3)
  assert.equal(
    ['true', '1', 'false', '0'].map(text => v.parse(queryBoolean(), text)),
    [true, true, false, false],
  )

  const { $schema: _, ...integer } = convert(limit) as Record<string, unknown>
  assert.equal(integer, { type: 'integer', minimum: 1, maximum: 100 })
  assert.is(convert(queryInteger()).type, 'integer')
  assert.is(convert(queryBoolean()).type, 'boolean')
  assert.is(convert(limit, 'input').type, 'string')
})

test('a timestamp is a date-time with seconds and offset', () => {
  const { $schema: _, ...schema } = convert(Timestamp) as Record<string, unknown>
  assert.equal(schema, { type: 'string', format: 'date-time' })
  for (const text of ['2030-01-31T09:00:00.000Z', '2030-01-31T09:00:00Z', '2030-01-31T09:00:00+02:00'])
    assert.ok(v.safeParse(Timestamp, text).success, text)
  const wrong = ['2030-02-29T09:00:00Z', '2030-01-31T09:00:00+05', '2030-13-31T09:00:00Z']
  for (const text of ['2030-01-31', '2030-01-31T09:00:00', ...wrong, 'now', 1_900_000_000_000])
    assert.not(v.safeParse(Timestamp, text).success, String(text))
})

test('an error body has the members of the contract', () => {
  assert.equal(
    without(schemaFacts({ $ref: 'svc:Error' } as JsonSchema, resolveContract), schemaFacts(convert(ErrorBody))),
    [],
  )
})

test('a participation request is local unless it is marked live', () => {
  for (const request of [
    {},
    { mode: 'local' },
    { mode: 'live', channel_strategy: 'named', channel_id: 'builders', bounds: { max_wakes: 3 } },
    { mode: 'live', channel_strategy: 'run' },
    { mode: 'live', channel_strategy: 'loop_run' },
  ])
    assert.ok(v.safeParse(ParticipationRequest, request).success, JSON.stringify(request))
  for (const request of [
    { mode: 'live' },
    { mode: 'live', channel_strategy: 'named' },
    { mode: 'live', channel_strategy: 'run', channel_id: 'builders' },
    { mode: 'local', channel_id: 'builders' },
    { channel_strategy: 'run' },
  ])
    assert.not(v.safeParse(ParticipationRequest, request).success, JSON.stringify(request))
})

test('a prompt may name its text and identities in either form, and needs only a text', () => {
  for (const body of [
    { text: 'hello' },
    { message: 'hello' },
    { messages: [{ role: 'user', parts: [{ type: 'text', text: 'hello' }] }] },
    { text: 'hello', message_id: 'msg_1', idempotency_key: 'once', mode: 'interrupt' },
    { message: 'hello', messageId: 'msg_1', runtime: { provider: 'mock', speed: 'fast' } },
  ])
    assert.ok(v.safeParse(PromptBody, body).success, JSON.stringify(body))
  for (const body of [{ text: 1 }, { text: 'hello', mode: 'shout' }, { text: 'hello', runtime: {} }, 'hello'])
    assert.not(v.safeParse(PromptBody, body).success, JSON.stringify(body))
})

test.run()
