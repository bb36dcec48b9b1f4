import { createHash, randomBytes } from 'node:crypto'
import { appendFile, cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../../../kernel/plugin.js'
import { withStore } from '../../../../plugins/desk/backup/chunks/collect.js'
import { deleteBackup } from '../../../../plugins/desk/backup/remove.js'
import { exportBackup } from '../../../../plugins/desk/backup/restore/export.js'
import { boot } from '../../../harness/kernel.js'
import { codeOf, plugins, type World, world } from './world.js'

const MB = 1024 * 1024
const JOURNAL = 'sessions/ses_1/events-1.log'

const test = suite<{ w: World; folder: string }>('backup chunks')
test.before.each(async context => {
  context.w = await world()
  context.folder = path.join(context.w.home, 'backups')
})
test.after.each(({ w }) => w.end())

const chunksIn = async (folder: string): Promise<string[]> =>
  (await readdir(path.join(folder, 'chunks')).catch(() => [])).filter(name => /^[0-9a-f]{64}$/.test(name)).sort()

const inHome = async (w: World, name: string, bytes: Uint8Array): Promise<void> => {
  await mkdir(path.dirname(path.join(w.home, name)), { recursive: true })
  await writeFile(path.join(w.home, name), bytes)
}

test('the second backup of large journals copies only new chunks', async ({ w, folder }) => {
  await inHome(w, JOURNAL, randomBytes(8 * MB + 300_000))
  await inHome(w, 'sessions/ses_1/events-900.log', randomBytes(3 * MB + 10))
  await inHome(w, 'archives/tasks/1.db', randomBytes(4 * MB))
  const first = (await w.create()).backup
  assert.ok(first.added_bytes > 15 * MB && first.added_bytes === first.whole_bytes, JSON.stringify(first))
  const before = await chunksIn(folder)
  await appendFile(path.join(w.home, 'sessions/ses_1/events-900.log'), randomBytes(50_000))
  const second = (await w.create()).backup
  const fresh = (await chunksIn(folder)).filter(name => !before.includes(name))
  const sizes = await Promise.all(fresh.map(async name => (await stat(path.join(folder, 'chunks', name))).size))
  const added = sizes.reduce((sum, size) => sum + size, 0)
  // The rest of the journal that grew: its last chunk.
  assert.is(fresh.length, 1)
  assert.is(added, 50_010)
  assert.is(second.added_bytes, second.bytes + added)
  assert.ok(second.bytes < 2 * MB, `${second.bytes}`)
  assert.ok(second.whole_bytes > 15 * MB)
  for (const { path: file } of [first, second]) await w.verify(file)
  const home = path.join(w.folder, 'restored')
  await w.restore(second.path, home)
  for (const name of [JOURNAL, 'sessions/ses_1/events-900.log', 'archives/tasks/1.db'])
    assert.ok((await readFile(path.join(home, name))).equals(await readFile(path.join(w.home, name))), name)
  const { backups } = (await w.request('GET', '/api/backups')).body
  assert.equal(
    backups.map(({ name, added_bytes }: { name: string; added_bytes: number }) => [name, added_bytes]),
    [second, first].map(({ name, added_bytes }) => [name, added_bytes]),
  )
})

test('a backup needs its chunks; without them it is refused with the next step', async ({ w, folder }) => {
  await inHome(w, JOURNAL, randomBytes(2 * MB))
  const { backup } = await w.create()
  const alone = path.join(w.folder, backup.name)
  await cp(backup.path, alone)
  const error = await w.verify(alone).catch(error => error)
  assert.is(error.code, 'backup_incomplete')
  assert.match(error.message, /2 of the 2 chunks that it needs are not in/)
  assert.is(error.next, 'svc backup export <file> --to <file>')
  assert.is(await codeOf(w.restore(alone, path.join(w.folder, 'home'))), 'backup_incomplete')
  assert.is(await codeOf(stat(path.join(w.folder, 'home'))), 'ENOENT')
  const copied = path.join(w.folder, 'copied')
  await cp(folder, copied, { recursive: true })
  await w.verify(path.join(copied, backup.name))
  await rm(path.join(folder, 'chunks', (await chunksIn(folder))[0] as string))
  const { backups } = (await w.request('GET', '/api/backups')).body
  assert.is(backups[0].incomplete, true)
})

test('an exported backup is one file that is restored elsewhere', async ({ w }) => {
  const journal = randomBytes(2 * MB + 700)
  await inHome(w, JOURNAL, journal)
  const { backup } = await w.create()
  const { signal } = new AbortController()
  const output = path.join(w.folder, 'move.tar')
  await exportBackup({ file: backup.path, output, sealing: { to: [] }, signal })
  const whole = (await w.create({ output: path.join(w.folder, 'whole.tar') })).backup
  await w.kernel.close()
  await rm(path.join(w.home, 'backups'), { recursive: true })
  const [exported, made] = await Promise.all([w.verify(output), w.verify(whole.path)])
  assert.equal([exported.manifest.format, made.manifest.format], [1, 1])
  const home = path.join(w.folder, 'restored')
  await w.restore(output, home)
  assert.ok((await readFile(path.join(home, JOURNAL))).equals(journal))
  const sealed = path.join(w.folder, 'move.tar.age')
  await exportBackup({ file: output, output: sealed, sealing: { to: [], passphrase: 'long and secret' }, signal })
  await w.verify(sealed, { passphrase: 'long and secret' })
  assert.is(await codeOf(exportBackup({ file: output, output, sealing: { to: [] }, signal })), 'backup_output_exists')
})

test('a changed chunk is found, and the next backup repairs it', async ({ w, folder }) => {
  await inHome(w, JOURNAL, randomBytes(2 * MB))
  const { backup } = await w.create()
  const chunk = path.join(folder, 'chunks', (await chunksIn(folder))[0] as string)
  const bytes = await readFile(chunk)
  bytes[77] = (bytes[77] as number) ^ 1
  for (const damaged of [bytes, bytes.subarray(1), Buffer.alloc(0), Buffer.alloc(20 * MB)]) {
    await writeFile(chunk, damaged)
    assert.is(await codeOf(w.verify(backup.path)), 'backup_damaged')
  }
  const next = (await w.create()).backup
  assert.is(next.added_bytes - next.bytes, MB)
  for (const { path: file } of [backup, next]) await w.verify(file)
})

test('a changed list of chunks is found', async ({ w }) => {
  await inHome(w, JOURNAL, randomBytes(2 * MB))
  const { backup } = await w.create()
  const bytes = await readFile(backup.path)
  const at = bytes.indexOf('"chunks":[["') + 12
  bytes[at] = bytes[at] === 0x30 ? 0x31 : 0x30
  await writeFile(backup.path, bytes)
  assert.is(await codeOf(w.verify(backup.path)), 'backup_damaged')
})

test('deleting a backup removes its unshared chunks, whatever the names of other backups', async ({ w, folder }) => {
  const shared = randomBytes(2 * MB)
  await inHome(w, JOURNAL, Buffer.concat([shared, randomBytes(MB)]))
  const first = (await w.create()).backup
  await inHome(w, JOURNAL, Buffer.concat([shared, randomBytes(MB)]))
  const second = (await w.create()).backup
  assert.is((await chunksIn(folder)).length, 4)
  const kept = path.join(folder, 'monday')
  await rename(second.path, kept)
  assert.is((await deleteBackup(folder, first.name, systemClock())).freed, MB)
  assert.is((await chunksIn(folder)).length, 3)
  await w.verify(kept)
  assert.is((await deleteBackup(folder, 'monday', systemClock())).freed, 3 * MB)
  assert.equal(await chunksIn(folder), [])
  assert.is(await codeOf(deleteBackup(folder, 'monday', systemClock())), 'backup_not_found')
  await writeFile(path.join(folder, 'notes.txt'), 'mine')
  assert.is(await codeOf(deleteBackup(folder, 'notes.txt', systemClock())), 'backup_not_one')
})

test('no chunk is removed while a backup of the folder is unreadable', async ({ w, folder }) => {
  await inHome(w, JOURNAL, randomBytes(2 * MB))
  const first = (await w.create()).backup
  const second = (await w.create()).backup
  const bytes = await readFile(first.path)
  const at = bytes.indexOf('"chunks":[["') + 12
  bytes[at] = bytes[at] === 0x30 ? 0x31 : 0x30
  await writeFile(first.path, bytes)
  const { freed, unreadable } = await deleteBackup(folder, second.name, systemClock())
  assert.equal([freed, unreadable], [0, first.name])
  assert.is((await chunksIn(folder)).length, 2)
  await deleteBackup(folder, first.name, systemClock())
  assert.equal(await chunksIn(folder), [])
})

test('backups beyond backup.keep are removed with their chunks and with leftovers of killed processes', async ({
  w,
  folder,
}) => {
  await w.kernel.close()
  await w.file('config.json', '{"backup":{"keep":2}}')
  const own = await boot({ home: w.home, plugins })
  try {
    for (let n = 0; n < 3; n++) {
      await inHome(w, JOURNAL, randomBytes(MB))
      if (n === 2) {
        // A backup that was killed has chunks that no backup needs, and half a chunk.
        const orphan = randomBytes(20_000)
        const name = createHash('sha256').update(orphan).digest('hex')
        await writeFile(path.join(folder, 'chunks', name), orphan)
        await writeFile(path.join(folder, 'chunks', `.${name}.tmp`), 'half')
      }
      assert.is((await own.request('POST', '/api/backups', {})).status, 201)
    }
    assert.is((await chunksIn(folder)).length, 2)
    assert.equal(
      (await readdir(path.join(folder, 'chunks'))).filter(name => name.endsWith('.tmp')),
      [],
    )
    for (const { path: file } of (await own.request('GET', '/api/backups')).body.backups) await w.verify(file)
  } finally {
    await own.close()
  }
})

test('a backup and a deletion in one folder wait for each other', async ({ w, folder }) => {
  await inHome(w, JOURNAL, randomBytes(2 * MB))
  const { backup } = await w.create()
  let release = () => {}
  const isHeld = new Promise<void>(resolve => {
    void withStore(folder, systemClock(), () => {
      resolve()
      return new Promise<void>(end => {
        release = end
      })
    })
  })
  await isHeld
  assert.is(await codeOf(deleteBackup(folder, backup.name, systemClock())), 'backup_busy')
  const making = w.request('POST', '/api/backups', {})
  release()
  assert.is((await making).status, 201)
})

test('a failed backup leaves no chunks', async ({ w, folder }) => {
  await inHome(w, JOURNAL, randomBytes(2 * MB))
  await mkdir(folder, { recursive: true })
  // Nothing can be put under the name of the chunk.
  const name = createHash('sha256')
    .update((await readFile(path.join(w.home, JOURNAL))).subarray(MB))
    .digest('hex')
  await mkdir(path.join(folder, 'chunks', name, 'x'), { recursive: true })
  const reply = await w.request('POST', '/api/backups', {})
  assert.is(reply.body.code, 'backup_output_invalid')
  assert.equal(await chunksIn(folder), [])
})

test('backups outside the folder and encrypted ones are self-contained', async ({ w, folder }) => {
  await inHome(w, JOURNAL, randomBytes(2 * MB))
  const elsewhere = (await w.create({ output: path.join(w.folder, 'x.tar') })).backup
  const sealed = (await w.create({ passphrase: 'long and secret' })).backup
  for (const { bytes, added_bytes, whole_bytes } of [elsewhere, sealed]) {
    assert.ok(bytes > 2 * MB)
    assert.equal([added_bytes, whole_bytes], [bytes, bytes])
  }
  assert.equal(await chunksIn(folder), [])
})

test.run()
