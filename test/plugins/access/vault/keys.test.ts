// timeout: 180s
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { resolveSecret } from '../../../../kernel/kit/secret-ref.js'
import { sql, type VaultWorld, vaultWorld } from './world.js'

const A = 'vault:mcp/a/TOKEN'
const B = 'vault:mcp/b/TOKEN'
const values = { [A]: 'value-of-the-first', [B]: 'value-of-the-second' }
const newKey = () => randomBytes(32).toString('base64')
const test = suite<{ world: VaultWorld }>('vault keys and damage')

test.before.each(async context => {
  context.world = await vaultWorld()
})
test.after.each(async ({ world }) => {
  await world.close().catch(() => {})
  await world.remove()
})

async function fill(world: VaultWorld): Promise<void> {
  for (const [ref, value] of Object.entries(values)) assert.is((await world.put(ref, value)).status, 200)
}

/** Ends the kernel, does something to the home, starts another one. */
async function restart(world: VaultWorld, between: () => void = () => {}, env: Record<string, string> = {}) {
  await world.close()
  between()
  const own = { PATH: process.env.PATH, HOME: world.home, SVC_HOME: world.home }
  Object.assign(world, await vaultWorld({ home: world.home, env: { ...own, ...env } }))
}

const health = async (world: VaultWorld) => (await world.request('GET', '/api/status')).body.health
const readable = async (world: VaultWorld) => [await world.resolved(A), await world.resolved(B)]
const whole = Object.values(values)
const keysInUse = (world: VaultWorld) => world.inside.db.row('SELECT count(DISTINCT key_id) FROM vault_secret')?.[0]

for (const [what, change] of Object.entries({
  // Each replaces one character by another one of base64, so that it is still a text of this form.
  'a flipped bit of the nonce': `sealed = replace(substr(sealed, 1, 12), substr(sealed, 12, 1), char(unicode(substr(sealed, 12, 1)) + 1)) || substr(sealed, 13)`,
  'a flipped bit of the ciphertext': `sealed = substr(sealed, 1, 29) || CASE substr(sealed, 30, 1) WHEN 'A' THEN 'B' ELSE 'A' END || substr(sealed, 31)`,
  'a flipped bit of the tag': `sealed = substr(sealed, 1, length(sealed) - 5) || CASE substr(sealed, -5, 1) WHEN 'A' THEN 'B' ELSE 'A' END || substr(sealed, -4)`,
  'a truncated text': 'sealed = substr(sealed, 1, 20)',
  'an empty text': "sealed = ''",
  'the record of another secret': `sealed = (SELECT sealed FROM vault_secret WHERE ref = '${B}')`,
  'another version': 'version = version + 1',
  'the fingerprint of another key': "key_id = '0123456789abcdef'",
})) {
  test(`${what} is reported by reference, disables only that secret, and is repaired by a new value`, async ({
    world,
  }) => {
    await fill(world)
    await restart(world, () => sql(world.home, `UPDATE vault_secret SET ${change} WHERE ref = '${A}'`))
    const code = what.includes('key') ? 'vault_key_wrong' : 'vault_secret_damaged'
    assert.equal(await readable(world), [code, values[B]])
    assert.equal(await world.present(), { [A]: false, [B]: true })
    assert.equal(await world.doctor(), [code])
    const { status, vault } = await health(world)
    assert.equal([status, vault.status, vault.damaged], ['degraded', 'degraded', 1])
    assert.ok(world.log.some(({ level, msg }) => level === 'error' && msg.includes(A)))
    assert.is((await world.put('vault:hooks/new/TOKEN', 'stored-meanwhile')).status, 200)
    await world.put(A, 'a-new-value-of-it')
    assert.equal(await readable(world), ['a-new-value-of-it', values[B]])
    assert.equal(await world.doctor(), ['vault_ok'])
  })
}

test('two swapped records are both reported', async ({ world }) => {
  await fill(world)
  await restart(world, () =>
    sql(
      world.home,
      `UPDATE vault_secret SET ref = 'x' WHERE ref = '${A}'; UPDATE vault_secret SET ref = '${A}' WHERE ref = '${B}';
       UPDATE vault_secret SET ref = '${B}' WHERE ref = 'x'`,
    ),
  )
  assert.equal(await readable(world), ['vault_secret_damaged', 'vault_secret_damaged'])
})

test('a world-readable key file is not used until it is closed; everything else runs', async ({ world }) => {
  await fill(world)
  for (const mode of [0o640, 0o604, 0o660]) {
    await restart(world, () => chmodSync(world.keyFile, mode))
    assert.equal(await readable(world), ['vault_key_readable', 'vault_key_readable'])
    const { status, body } = await world.put(A, 'not-to-be-stored')
    assert.equal([status, body.code], [503, 'vault_key_readable'])
    assert.match(body.error, /mode 06/)
    assert.match(body.details.next, /chmod 0600 .*svc vault rotate/)
    assert.equal(await world.doctor(), ['vault_key_readable'])
    assert.is((await health(world)).status, 'degraded')
    assert.ok(world.log.some(({ level, code }) => level === 'error' && code === 'vault_key_readable'))
    assert.is((await world.request('GET', '/api/plugins/vault')).body.plugin.state, 'active')
    chmodSync(world.keyFile, 0o600)
    assert.equal(await readable(world), whole, 'without another start')
  }
  chmodSync(world.keyFile, 0o644)
  assert.equal(await world.doctor(), ['vault_key_readable'], 'doctor says so before the next start does')
  assert.is((await world.request('POST', '/api/vault/rotate')).status, 200)
  assert.equal(await world.doctor(), ['vault_ok'], 'a rotation has a new file')
})

test('a wrong and a missing key are reported, and no new key is created', async ({ world }) => {
  await fill(world)
  const saved = `${world.keyFile}.saved`
  const cases: Record<string, () => void> = {
    vault_key_wrong: () => writeFileSync(world.keyFile, newKey(), { mode: 0o600 }),
    vault_key_invalid: () => writeFileSync(world.keyFile, 'no key', { mode: 0o600 }),
    vault_key_missing: () => {},
    vault_key_unreadable: () => mkdirSync(world.keyFile),
  }
  for (const [code, spoil] of Object.entries(cases)) {
    await restart(world, () => {
      renameSync(world.keyFile, saved)
      spoil()
    })
    assert.equal(await readable(world), [code, code])
    assert.is((await world.put(A, 'not-to-be-stored')).body.code, code)
    assert.equal(await world.doctor(), [code])
    assert.equal(await world.present(), { [A]: false, [B]: false })
    await restart(world, () => {
      rmSync(world.keyFile, { recursive: true, force: true })
      renameSync(saved, world.keyFile)
    })
    assert.equal(await readable(world), whole)
  }
})

test('a key file that is a symbolic link is not followed', async ({ world }) => {
  await restart(world, () => {
    writeFileSync(`${world.keyFile}.elsewhere`, newKey(), { mode: 0o600 })
    symlinkSync(`${world.keyFile}.elsewhere`, world.keyFile)
  })
  assert.is((await world.put(A, values[A] as string)).body.code, 'vault_key_unreadable')
})

test('secrets with a lost key can be deleted, and the vault is usable again', async ({ world }) => {
  await fill(world)
  await restart(world, () => rmSync(world.keyFile))
  for (const ref of [A, B])
    assert.is((await world.request('DELETE', `/api/vault/secrets?ref=${encodeURIComponent(ref)}`)).status, 204)
  await fill(world)
  assert.equal(await readable(world), whole)
})

test('a rotation seals every secret with a new key; the old key file opens nothing', async ({ world }) => {
  await fill(world)
  const before = readFileSync(world.keyFile)
  const { status, body } = await world.request('POST', '/api/vault/rotate')
  assert.equal([status, body.resealed], [200, 2])
  assert.equal(await readable(world), whole)
  assert.not.equal(readFileSync(world.keyFile), before)
  assert.not.ok(existsSync(`${world.keyFile}.next`))
  await restart(world)
  assert.equal(await readable(world), whole)
  await restart(world, () => writeFileSync(world.keyFile, before))
  assert.equal(await readable(world), ['vault_key_wrong', 'vault_key_wrong'])
})

test('values are read and stored during a rotation', async ({ world }) => {
  await Promise.all([...Array(300).keys()].map(at => world.put(`vault:mcp/many/n${at}`, `value-number-${at}`)))
  await fill(world)
  let isOver = false
  const rotated = world.request('POST', '/api/vault/rotate').finally(() => {
    isOver = true
  })
  for (let round = 0; !isOver; round++) {
    assert.is((await world.put(B, `value-of-round-${round}`)).status, 200)
    assert.equal(await readable(world), [values[A], `value-of-round-${round}`])
  }
  assert.is((await rotated).status, 200)
  assert.is(keysInUse(world), 1)
})

test('concurrent rotations run one after the other', async ({ world }) => {
  await fill(world)
  const both = await Promise.all([1, 2].map(() => world.request('POST', '/api/vault/rotate')))
  assert.equal(
    both.map(({ body }) => body.resealed),
    [2, 2],
  )
  assert.equal(await readable(world), whole)
})

for (const step of [
  'before the first secret is sealed again',
  'in the middle',
  'before the old key is deleted',
] as const) {
  test(`a rotation interrupted by a crash ${step} is finished by the next start`, async ({ world }) => {
    await fill(world)
    const before = readFileSync(world.keyFile)
    const row = "SELECT 'key_id = ' || quote(key_id) || ', sealed = ' || quote(sealed) FROM vault_secret"
    let sealedBefore = ''
    await restart(world, () => {
      sealedBefore = sql(world.home, `${row} WHERE ref = '${A}'`)
    })
    await world.request('POST', '/api/vault/rotate')
    // What such a crash leaves: both keys, and each secret under one of them.
    await restart(world, () => {
      if (step === 'before the first secret is sealed again') {
        writeFileSync(`${world.keyFile}.next`, newKey(), { mode: 0o600 })
        return
      }
      renameSync(world.keyFile, `${world.keyFile}.next`)
      writeFileSync(world.keyFile, before, { mode: 0o600 })
      if (step === 'in the middle') sql(world.home, `UPDATE vault_secret SET ${sealedBefore} WHERE ref = '${A}'`)
    })
    assert.equal(await readable(world), whole)
    await untilFinished(world)
    assert.equal(await readable(world), whole)
    assert.is(keysInUse(world), 1)
    await restart(world)
    assert.equal(await readable(world), whole)
  })
}

async function untilFinished(world: VaultWorld): Promise<void> {
  const end = performance.now() + 60_000
  while (existsSync(`${world.keyFile}.next`)) {
    assert.ok(performance.now() < end, 'the rotation is not finished')
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

test('a key from the environment is used, is no file, cannot be rotated, and gives way to the next one', async ({
  world,
}) => {
  const [first, second] = [newKey(), newKey()]
  await restart(world, undefined, { SVC_VAULT_KEY: first })
  await fill(world)
  assert.not.ok(existsSync(world.keyFile))
  const { status, body } = await world.request('POST', '/api/vault/rotate')
  assert.equal([status, body.code], [409, 'vault_key_external'])
  await restart(world, undefined, { SVC_VAULT_KEY: second })
  assert.equal(await readable(world), ['vault_key_wrong', 'vault_key_wrong'])
  await restart(world, undefined, { SVC_VAULT_KEY: second, SVC_VAULT_KEY_PREVIOUS: first })
  assert.equal(await readable(world), whole)
  await restart(world, undefined, { SVC_VAULT_KEY: second })
  assert.equal(await readable(world), whole, 'the start before sealed them anew')
  assert.is((await health(world)).vault.key_source, 'environment')
  await restart(world, undefined, { SVC_VAULT_KEY: 'not base64 of 32 bytes' })
  assert.equal(await readable(world), ['vault_key_invalid', 'vault_key_invalid'])
})

test('the key of the environment is hidden, and no reference resolves to it', async ({ world }) => {
  const key = newKey()
  await restart(world, undefined, { SVC_VAULT_KEY: key })
  await fill(world)
  world.inside.log.warn(`somebody prints ${key}`)
  assert.not.match(JSON.stringify(world.log), key)
  const kernel = { collect: world.inside.collect, name: 'extensions' }
  const fault = await resolveSecret(kernel, 'env:SVC_VAULT_KEY', 'KEY').catch(error => error)
  assert.is(fault.code, 'secret_missing')
})

test('a key from a systemd credential is used', async ({ world }) => {
  const credentials = path.join(world.home, 'credentials')
  mkdirSync(credentials)
  const [first, second] = [newKey(), newKey()]
  writeFileSync(path.join(credentials, 'svc-vault-key'), `${first}\n`, { mode: 0o440 })
  await restart(world, undefined, { CREDENTIALS_DIRECTORY: credentials })
  await fill(world)
  assert.equal([(await health(world)).vault.key_source, existsSync(world.keyFile)], ['credential', false])
  await restart(
    world,
    () => {
      writeFileSync(path.join(credentials, 'svc-vault-key-previous'), first)
      writeFileSync(path.join(credentials, 'svc-vault-key'), second)
    },
    { CREDENTIALS_DIRECTORY: credentials },
  )
  assert.equal(await readable(world), whole)
})

test.run()
