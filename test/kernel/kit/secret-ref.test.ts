import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { Fault } from '../../../kernel/contract/errors.js'
import type { RegistryToken } from '../../../kernel/contract/token.js'
import { parseSecretRef, resolveSecret, type SecretResolver, secretRef } from '../../../kernel/kit/secret-ref.js'
import { label } from '../../fixtures/cases.js'

test('a reference is a scheme and the value it parses', () => {
  assert.equal(parseSecretRef('env:TOKEN_1'), { scheme: 'env', rest: 'TOKEN_1' })
  assert.equal(parseSecretRef('keep:mail/in:box'), { scheme: 'keep', rest: 'mail/in:box' })
})

for (const text of [
  '',
  'TOKEN',
  'env:',
  'env:1A',
  'env:A-B',
  'env:A B',
  'Env:A',
  ':x',
  'keep:',
  'keep:a b',
  'keep:a\n',
  `keep:${'x'.repeat(513)}`,
])
  test(`the text ${label(text, 30)} is no reference (${text.length} characters)`, () =>
    assert.is(parseSecretRef(text), undefined))

const schema = secretRef({ env: '', keep: 'mail/' })

for (const bad of ['keep:mail/', 'keep:other/x', 'file:/etc/passwd', 'constructor:x', 'hunter2', 'hunter2:x', 7])
  test(`a member refuses ${bad}`, () => assert.not.ok(v.is(schema, bad)))

test('a member accepts its named schemes, and an inline secret is not repeated in the error', () => {
  for (const good of ['env:A', 'keep:mail/x']) assert.is(v.parse(schema, good), good)
  const { issues } = v.safeParse(schema, 'hunter2')
  assert.is(issues?.[0].message, 'a reference: env:NAME or keep:mail/…')
})

/** A kernel whose resolvers are these. */
const kernel = (...resolvers: readonly (readonly [owner: string, entry: SecretResolver])[]) => ({
  name: 'acme.mail',
  collect: <T>(_: RegistryToken<T>) => resolvers.map(([owner, entry]) => ({ owner, entry: entry as T })),
})
const requests: string[] = []
const env: SecretResolver = {
  scheme: 'env',
  resolve: (rest, asker) => {
    requests.push(`${asker} ${rest}`)
    return { TOKEN: 'sesame', EMPTY: '' }[rest]
  },
  missing: rest => ({ why: `no variable ${rest}`, next: `set ${rest}` }),
}
const outcome = async (run: Promise<string>) =>
  run.catch(error => {
    if (error instanceof Fault) return { code: error.code, status: error.status, text: error.message, next: error.next }
    throw error
  })

test('a secret comes from the resolver of its scheme, which learns the caller', async () => {
  assert.is(await resolveSecret(kernel(['base', env]), 'env:TOKEN', 'TOKEN of the server'), 'sesame')
  assert.equal(requests, ['acme.mail TOKEN'])
})

test('a scheme with no or two resolvers is an error, and so is a missing secret', async () => {
  const other: SecretResolver = { scheme: 'env', resolve: () => 'stolen' }
  assert.equal(await outcome(resolveSecret(kernel(['base', env]), 'keep:mail/x', 'TOKEN')), {
    code: 'secret_resolver_missing',
    status: 422,
    text: 'TOKEN is keep:mail/x, but nothing resolves keep references yet',
    next: 'use env:NAME and set it in the environment of the daemon',
  })
  assert.equal(await outcome(resolveSecret(kernel(['base', env], ['acme.x', other]), 'env:TOKEN', 'TOKEN')), {
    code: 'secret_resolver_conflict',
    status: 409,
    text: 'TOKEN is env:TOKEN: base and acme.x resolve env:',
    next: 'add one of them to plugins.disabled',
  })
  for (const name of ['NONE', 'EMPTY']) {
    assert.equal(await outcome(resolveSecret(kernel(['base', env]), `env:${name}`, 'TOKEN')), {
      code: 'secret_missing',
      status: 422,
      text: `TOKEN needs ${name}: no variable ${name}`,
      next: `set ${name}`,
    })
  }
})

test('an invalid reference may be a secret and is not repeated', async () => {
  const wrong = await outcome(resolveSecret(kernel(['base', env]), 'hunter2', 'TOKEN'))
  assert.equal(wrong, {
    code: 'secret_ref_invalid',
    status: 422,
    text: 'TOKEN is not a reference such as env:NAME',
    next: 'svc help',
  })
})

test.run()
