import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { schemaForm } from '../../../../plugins/desk/console/app/ui/schema-form.js'

const schema = JSON.stringify({
  type: 'object',
  required: ['server'],
  properties: {
    server: { type: 'string', title: 'Server', description: 'Host name.' },
    port: { type: 'integer' },
    tls: { type: 'boolean', default: true },
    login: { type: 'string', enum: ['sasl', 'none'], default: 'sasl' },
    rooms: { type: 'array', items: { type: 'string' }, default: [] },
    token: { type: 'string', writeOnly: true },
    limits: { type: 'object', properties: { burst: { type: 'integer' } } },
    rules: { type: 'array', items: { type: 'object' } },
  },
})
const before = { server: 'a.example', token: 'kept', limits: { burst: 3 }, unknown: { of: 'another version' } }
const { fields, objectOf } = schemaForm(schema, before)
const values = Object.fromEntries(fields.map(({ name, value = '' }) => [name, value]))

test('values that nobody changed make the same object, with the members that have no field', () => {
  assert.equal(objectOf(values), before)
})

test('each value becomes a member of its type', () => {
  const changed = {
    ...{ server: 'b.example', port: '6697', tls: 'false', login: 'none', rooms: '#ops\n #talk \n', token: 'new' },
    ...{ 'limits.burst': '8', rules: '[{"of":1}]' },
  }
  assert.equal(objectOf(changed), {
    ...{ server: 'b.example', port: 6697, tls: false, login: 'none', rooms: ['#ops', '#talk'], token: 'new' },
    ...{ limits: { burst: 8 }, rules: [{ of: 1 }], unknown: { of: 'another version' } },
  })
})

test('an empty field removes its member, and an object that has no more; a secret stays', () => {
  assert.equal(objectOf({ server: 'a.example' }), {
    ...{ server: 'a.example', token: 'kept', unknown: { of: 'another version' } },
  })
})

test('a secret is never the value of a field, and choices can be left open', () => {
  const field = (name: string) => fields.find(one => one.name === name)
  assert.is(field('token')?.kind, 'password')
  assert.is(field('token')?.value, '')
  assert.equal(field('tls')?.options?.[0], ['', 'default: yes'])
  assert.not.ok(field('server')?.optional)
  assert.is(fields[0]?.name, 'server')
})

test('a schema that is no object, or names the prototype, makes a form without harm', () => {
  for (const source of [undefined, 'no JSON', 'null', '[]', '{"properties":[1]}', '{"properties":{"a":null}}'])
    assert.equal(schemaForm(source, {}).objectOf({}), {})
  const hostile = '{"properties":{"__proto__":{"properties":{"polluted":{"type":"string"}}}}}'
  schemaForm(hostile, {}).objectOf({ '__proto__.polluted': 'yes' })
  assert.is(({} as { polluted?: string }).polluted, undefined)
})

test('text that is no JSON is refused', () => {
  assert.throws(() => objectOf({ ...values, rules: '[' }), 'This is no JSON.')
})

test.run()
