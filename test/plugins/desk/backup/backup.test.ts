import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { boot, temporaryFolder } from '../../../harness/kernel.js'
import { codeOf, filesBelow, plugins, type World, world } from './world.js'

const test = suite<{ w: World }>('backup')
test.before.each(async context => {
  context.w = await world()
})
test.after.each(({ w }) => w.end())

test('a backup of a running home is verified and restored with records and files, and the home is held', async ({
  w,
}) => {
  const root_dir = path.join(w.folder, 'project')
  await mkdir(root_dir)
  const made = (await w.request('POST', '/api/workspaces', { root_dir, name: 'project' })).body.workspace
  await w.file('agents/ada/AGENT.md', '# Ada\n')
  await w.file('extensions/clock/run.sh', '#!/bin/sh\n', 0o700)
  await w.file(`skills/${'long/'.repeat(30)}Ünï.md`, 'x'.repeat(100_000))
  const { backup, files, left_out } = await w.create()
  assert.equal([backup.kind, backup.encrypted, left_out], ['manual', false, []])
  assert.is((await stat(backup.path)).mode & 0o777, 0o600)
  const { manifest } = await w.verify(backup.path)
  assert.is(manifest.files.length, files)
  assert.is(manifest.tables.workspaces_workspace, 1)
  const home = path.join(w.folder, 'restored')
  await w.restore(backup.path, home)
  assert.is(await readFile(path.join(home, 'agents/ada/AGENT.md'), 'utf8'), '# Ada\n')
  assert.is((await stat(path.join(home, 'extensions/clock/run.sh'))).mode & 0o777, 0o700)
  assert.is((await stat(home)).mode & 0o777, 0o700)
  const other = await boot({ home, plugins })
  try {
    assert.equal((await other.request('GET', '/api/workspaces')).body.workspaces[0], made)
    const { daemon } = (await other.request('GET', '/api/status')).body
    assert.match(daemon.held, new RegExp(`restored from ${backup.name}.*svc backup confirm`))
    const items = (await other.request('GET', '/api/doctor?only=daemon.held')).body.items
    assert.equal(
      items.map(({ code, suggested_command }: Record<string, string>) => [code, suggested_command]),
      [['home_held', 'svc backup confirm']],
    )
    const hold = (await other.request('GET', '/api/backups/hold')).body
    assert.equal([hold.held, hold.hold.backup, hold.command], [true, backup.name, 'svc backup confirm'])
    assert.equal((await other.request('POST', '/api/backups/confirm')).body, { held: false })
    assert.is((await other.request('GET', '/api/status')).body.daemon.held, undefined)
    assert.is((await other.request('POST', '/api/backups/confirm')).body.code, 'home_not_held')
  } finally {
    await other.close()
  }
  const again = await boot({ home, plugins })
  assert.equal((await again.request('GET', '/api/backups/hold')).body, { held: false })
  await again.close()
})

test('a restored home stays held across starts, also with an unreadable mark', async ({ w }) => {
  const { backup } = await w.create()
  const home = path.join(w.folder, 'restored')
  await w.restore(backup.path, home)
  await writeFile(path.join(home, 'held.json'), 'nonsense')
  for (const _ of [1, 2]) {
    const other = await boot({ home, plugins })
    assert.equal((await other.request('GET', '/api/backups/hold')).body, { held: true, command: 'svc backup confirm' })
    await other.close()
  }
})

test('a restored home has another id and no processes of its original', async ({ w }) => {
  const { backup } = await w.create()
  const home = path.join(w.folder, 'restored')
  const { manifest } = await w.restore(backup.path, home)
  const other = await boot({ home, plugins })
  const made = (await other.request('POST', '/api/backups', {})).body.backup
  await other.close()
  assert.is.not((await w.verify(made.path)).manifest.home_id, manifest.home_id)
})

test('the vault key, sockets, caches, logs, links and backups are not in a backup', async ({ w }) => {
  await w.file('vault.key', `${Buffer.alloc(32, 7).toString('base64')}\n`)
  await w.file('cache/x', 'x')
  await w.file('logs/x.log', 'x')
  await w.file('backups/old.tar', 'x')
  await w.file('.env', 'A=1\nSVC_VAULT_KEY=abc\n')
  await symlink('/etc/passwd', path.join(w.home, 'link'))
  const { backup, left_out, vault_key } = await w.create()
  assert.is(vault_key, false)
  assert.equal(
    left_out.map((entry: { path: string }) => entry.path),
    ['.env', 'link', 'vault.key'],
  )
  const home = path.join(w.folder, 'restored')
  await w.restore(backup.path, home)
  const files = (await filesBelow(home)).filter(name => !/^(svc\.db|daemon\.lock|held\.json)/.test(name))
  assert.equal(
    files,
    (await filesBelow(w.home)).filter(name => files.includes(name)),
  )
  assert.equal(
    files.filter(name => /^(cache|logs|backups|vault|\.env|link|operator)/.test(name)),
    [],
  )
  const asked = await w.create({ include_vault_key: true })
  assert.is(asked.vault_key, true)
  const { manifest } = await w.verify(asked.backup.path)
  assert.equal(
    manifest.files.map(file => file.path).filter(name => /^(vault\.key|\.env)$/.test(name)),
    ['.env', 'vault.key'],
  )
})

test('secrets that cannot be read without the key are named', async ({ w }) => {
  const ref = 'vault:sessions/one'
  const put = await w.request('PUT', '/api/vault/secrets', { ref, secret_value: 'a secret that is long' })
  assert.is(put.status, 200)
  const { backup } = await w.create()
  assert.equal((await w.verify(backup.path)).lockedSecrets, [ref])
  const asked = await w.create({ include_vault_key: true })
  assert.equal((await w.verify(asked.backup.path)).lockedSecrets, [])
})

test('an encrypted backup opens only with its passphrase or identity', async ({ w }) => {
  const { generateIdentity, identityToRecipient } = await import('age-encryption')
  const identity = await generateIdentity()
  const to = await identityToRecipient(identity)
  const sealed = (await w.create({ encrypt_to: [to] })).backup
  assert.equal([sealed.encrypted, sealed.path.endsWith('.tar.age')], [true, true])
  assert.not.match((await readFile(sealed.path)).toString('latin1'), /svc-manifest|SQLite/)
  assert.is((await w.verify(sealed.path, { identities: [identity] })).manifest.kind, 'manual')
  assert.is(await codeOf(w.verify(sealed.path)), 'backup_encrypted')
  assert.is(await codeOf(w.verify(sealed.path, { identities: [await generateIdentity()] })), 'backup_key_wrong')
  assert.is(await codeOf(w.verify(sealed.path, { identities: ['nonsense'] })), 'backup_key_wrong')
  const bytes = await readFile(sealed.path)
  bytes[bytes.length - 200] = (bytes[bytes.length - 200] as number) ^ 1
  const broken = path.join(w.folder, 'broken.tar.age')
  await writeFile(broken, bytes)
  assert.is(await codeOf(w.verify(broken, { identities: [identity] })), 'backup_damaged')
  const locked = (await w.create({ passphrase: 'correct horse' })).backup
  assert.is((await w.verify(locked.path, { passphrase: 'correct horse' })).manifest.kind, 'manual')
  assert.is(await codeOf(w.verify(locked.path, { passphrase: 'wrong' })), 'backup_key_wrong')
  const wrong = await w.request('POST', '/api/backups', { encrypt_to: ['age1nonsense'] })
  assert.equal([wrong.status, wrong.body.code], [422, 'backup_recipient_invalid'])
})

test('a backup goes to a new file or into a folder, and never over a file', async ({ w }) => {
  const file = path.join(w.folder, 'mine.tar')
  assert.is((await w.create({ output: file })).backup.path, file)
  assert.match((await w.create({ output: w.folder })).backup.name, /^svc-.*\.tar$/)
  const refused = async (output: string) => (await w.request('POST', '/api/backups', { output })).body.code
  assert.is(await refused(file), 'backup_output_exists')
  assert.is(await refused(path.join(w.folder, 'missing/x.tar')), 'backup_output_invalid')
  assert.is(await refused('relative.tar'), 'backup_output_invalid')
  assert.equal(
    (await filesBelow(w.folder)).filter(name => name.includes('partial')),
    [],
  )
})

test('leftovers of killed backups are removed after a day, also from a named folder', async ({ w }) => {
  const folder = await temporaryFolder('backup-named')
  const at = new Date(Date.now() - 25 * 3_600_000)
  const left = '.svc-2030-01-31T090000000Z-01234567.tar.partial'
  for (const name of [left, '.mine.partial', '.svc-notes.partial']) {
    await writeFile(path.join(folder, name), 'x')
    await utimes(path.join(folder, name), at, at)
  }
  const recent = '.svc-2030-01-31T090000001Z-01234567.tar.partial'
  await writeFile(path.join(folder, recent), 'x')
  await w.create({ output: folder })
  const partial = (await readdir(folder)).filter(name => name.endsWith('.partial'))
  assert.equal(partial.toSorted(), ['.mine.partial', '.svc-notes.partial', recent].toSorted())
  await rm(folder, { recursive: true })
})

test('backup.keep bounds the backups of the folder, and the newest are listed first', async ({ w }) => {
  await w.kernel.close()
  await w.file('config.json', '{"backup":{"keep":2}}')
  const own = await boot({ home: w.home, plugins })
  const made: string[] = []
  for (let n = 0; n < 3; n++) made.push((await own.request('POST', '/api/backups', {})).body.backup.name)
  const { backups, keep } = (await own.request('GET', '/api/backups')).body
  await own.close()
  assert.equal([keep, backups.map((backup: { name: string }) => backup.name)], [2, made.slice(1).reverse()])
  assert.ok(backups.every((backup: { verified_at?: string }) => backup.verified_at))
})

test('a file rewritten during the backup is whole in it', async ({ w }) => {
  const file = path.join(w.home, 'archives/x/1.db')
  const text = (n: number) => `${n % 10}`.repeat(3_000_000)
  await w.file('archives/x/1.db', text(0))
  let n = 0
  let isOver = false
  const writing = (async () => {
    while (!isOver) {
      await writeFile(file, text(++n), { flag: 'r+' })
      await new Promise(resolve => setTimeout(resolve, 3))
    }
  })()
  const replies = [await w.request('POST', '/api/backups', {}), await w.request('POST', '/api/backups', {})]
  isOver = true
  await writing
  replies.push(await w.request('POST', '/api/backups', {}))
  assert.is(replies.at(-1)?.status, 201)
  for (const [at, { status, body }] of replies.entries()) {
    if (status !== 201) assert.is(body.code, 'backup_busy')
    else {
      const home = path.join(w.folder, `${at}`)
      await w.restore(body.backup.path, home)
      assert.is(new Set(await readFile(path.join(home, 'archives/x/1.db'), 'utf8')).size, 1)
    }
  }
})

test('a backup is restored only into a missing or empty home', async ({ w }) => {
  const { backup } = await w.create()
  const home = path.join(w.folder, 'full')
  await mkdir(home)
  await w.restore(backup.path, home)
  assert.is(await codeOf(w.restore(backup.path, home)), 'home_not_fresh')
  const file = path.join(w.folder, 'file')
  await writeFile(file, '')
  assert.is(await codeOf(w.restore(backup.path, file)), 'home_not_fresh')
})

test('an unfinished restore is repeated by the next one', async ({ w }) => {
  const { backup } = await w.create()
  const home = path.join(w.folder, 'half')
  await mkdir(path.join(home, 'agents/old'), { recursive: true })
  await writeFile(path.join(home, 'restoring.json'), '{"from":"x"}')
  await writeFile(path.join(home, 'agents/old/AGENT.md'), 'left')
  await w.restore(backup.path, home)
  const files = await filesBelow(home)
  assert.equal([files.includes('restoring.json'), files.includes('agents/old/AGENT.md')], [false, false])
})

test('of two backups asked for at once one is made', async ({ w }) => {
  const replies = await Promise.all([1, 2].map(() => w.request('POST', '/api/backups', {})))
  assert.equal(replies.map(({ body }) => body.code ?? 'made').sort(), ['backup_busy', 'made'])
})

test('with a full disk, a backup to another file system is made', async ({ w }) => {
  const elsewhere = '/dev/shm'
  const { dev } = await stat(w.folder)
  if ((await stat(elsewhere).catch(() => ({ dev }))).dev === dev) return
  const folder = await mkdtemp(path.join(elsewhere, 'backup-'))
  const full = await boot({ home: path.join(w.folder, 'home'), plugins, freeBytes: async () => 2 ** 20 })
  try {
    assert.is((await full.request('POST', '/api/backups', {})).body.code, 'disk_full')
    const output = path.join(w.folder, 'same.tar')
    assert.is((await full.request('POST', '/api/backups', { output })).body.code, 'disk_full')
    const { status, body } = await full.request('POST', '/api/backups', { output: path.join(folder, 'x.tar') })
    assert.is(status, 201, JSON.stringify(body))
    await w.restore(body.backup.path, path.join(w.folder, 'restored'))
  } finally {
    await full.close()
    await rm(folder, { recursive: true })
  }
})

test.run()
