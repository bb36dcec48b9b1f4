import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { headerOf } from '../../../../plugins/desk/backup/archive/tar.js'
import { codeOf, filesBelow, type World, world } from './world.js'

const BLOCK = 512
const test = suite<{ w: World; file: string; bytes: Buffer }>('hostile backups')
let shared: World
let bytes: Buffer
test.before(async () => {
  shared = await world()
  await shared.file('agents/ada/AGENT.md', '# Ada\n')
  bytes = await readFile((await shared.create()).backup.path)
})
test.after(() => shared.end())
test.before.each(context => {
  context.w = shared
  context.bytes = Buffer.from(bytes)
  context.file = path.join(shared.folder, `hostile-${Math.random()}.tar`)
})

/** The blocks of the entries of an archive, in order. */
function entriesIn(bytes: Buffer): { path: string; at: number; end: number; size: number }[] {
  const found = []
  for (let at = 0; bytes[at] !== 0; ) {
    const size = Number.parseInt(bytes.toString('latin1', at + 124, at + 135), 8)
    const end = at + BLOCK + Math.ceil(size / BLOCK) * BLOCK
    found.push({ path: bytes.toString('latin1', at, bytes.indexOf(0, at)), at, end, size })
    at = end
  }
  return found
}

/** A header with something else at a place, and the right sum. */
function patched(header: Buffer, patch: (header: Buffer) => void): Buffer {
  const bytes = Buffer.from(header)
  patch(bytes)
  bytes.fill(' ', 148, 156)
  const sum = bytes.reduce((total, byte) => total + byte, 0)
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0`, 148, 'latin1')
  return bytes
}

/** The same archive with an entry more, before its manifest. */
function withEntry(bytes: Buffer, entry: Buffer): Buffer {
  const { at } = entriesIn(bytes).at(-1) as { at: number }
  return Buffer.concat([bytes.subarray(0, at), entry, bytes.subarray(at)])
}

/** The same archive with another manifest, whose hash is right. */
function withManifest(bytes: Buffer, change: (manifest: Record<string, unknown>) => void): Buffer {
  const { at, size } = entriesIn(bytes).at(-1) as { at: number; size: number }
  const { manifest } = JSON.parse(bytes.toString('utf8', at + BLOCK, at + BLOCK + size))
  change(manifest)
  const sha256 = createHash('sha256').update(JSON.stringify(manifest)).digest('hex')
  const text = Buffer.from(JSON.stringify({ manifest, sha256 }))
  const header = headerOf({ path: 'svc-manifest.json', type: 'file', mode: 0o600, size: text.length })
  const padding = Buffer.alloc((BLOCK - (text.length % BLOCK)) % BLOCK)
  return Buffer.concat([bytes.subarray(0, at), header, text, padding, Buffer.alloc(2 * BLOCK)])
}

test('a flipped bit anywhere is found', async ({ w, file, bytes }) => {
  const entries = entriesIn(bytes)
  const places = entries.flatMap(({ at, size }) => [at + 5, at + BLOCK + Math.floor(size / 2)])
  for (const at of [...places, bytes.length - 700].filter(at => at < bytes.length)) {
    const damaged = Buffer.from(bytes)
    damaged[at] = (damaged[at] as number) ^ 1
    await writeFile(file, damaged)
    assert.match(await codeOf(w.verify(file)), /^backup_(damaged|not_one)$/, `byte ${at}`)
  }
})

test('a truncated backup is damaged', async ({ w, file, bytes }) => {
  for (const length of [20, 512, 700, Math.floor(bytes.length / 2), bytes.length - 1024, bytes.length - 1]) {
    await writeFile(file, bytes.subarray(0, length))
    assert.is(await codeOf(w.verify(file)), 'backup_damaged', `${length} bytes`)
  }
})

test('an invalid file, a folder and a missing file have codes of their own', async ({ w, file, bytes }) => {
  await writeFile(file, 'hello')
  assert.is(await codeOf(w.verify(file)), 'backup_not_one')
  await writeFile(file, '')
  assert.is(await codeOf(w.verify(file)), 'backup_not_one')
  assert.is(await codeOf(w.verify(w.folder)), 'backup_unreadable')
  assert.is(await codeOf(w.verify(`${file}.missing`)), 'backup_not_found')
  await writeFile(file, Buffer.concat([bytes, Buffer.from('more')]))
  assert.is(await codeOf(w.verify(file)), 'backup_damaged')
})

const plain = headerOf({ path: 'home/x', type: 'file', mode: 0o600, size: 0 })
const named = (name: string) => patched(plain, header => header.fill(0, 0, 100).write(name, 0, 'utf8'))
const typed = (type: string) => patched(plain, header => header.write(type, 156, 'latin1'))
const entries = {
  parent: named('home/../../escaped'),
  absolute: named('/escaped'),
  'absolute below': named('home//escaped'),
  here: named('home/./x'),
  'another folder': named('other/x'),
  zero: headerOf({ path: 'home/a\0b', type: 'file', mode: 0o600, size: 0 }),
  backslash: named('home/..\\x'),
  'hard link': typed('1'),
  'symbolic link': typed('2'),
  'character device': typed('3'),
  'block device': typed('4'),
  pipe: typed('6'),
  sparse: typed('S'),
  twice: headerOf({ path: 'home/svc.db', type: 'file', mode: 0o600, size: 0 }),
  unnamed: plain,
  'too large': headerOf({ path: 'home/x', type: 'file', mode: 0o600, size: 2 ** 50 }),
  'longer than the file': headerOf({ path: 'home/x', type: 'file', mode: 0o600, size: 2 ** 30 }),
  'a long name': headerOf({ path: `home/${'x'.repeat(9000)}`, type: 'file', mode: 0o600, size: 0 }),
  'a deep folder': headerOf({ path: `home/${'x/'.repeat(500)}x`, type: 'folder', mode: 0o700, size: 0 }),
}

for (const [what, entry] of Object.entries(entries))
  test(`an entry is refused and nothing is written: ${what}`, async ({ w, file, bytes }) => {
    const before = await filesBelow(w.folder)
    await writeFile(file, withEntry(bytes, entry))
    assert.is(await codeOf(w.verify(file)), 'backup_damaged')
    assert.is(await codeOf(w.restore(file, path.join(w.folder, 'home'))), 'backup_damaged')
    assert.equal(
      (await filesBelow(w.folder)).filter(name => !before.includes(name)),
      [path.basename(file)],
    )
  })

// biome-ignore lint/suspicious/noExplicitAny: damage of any shape
type Damaged = any

const changes: Record<string, (manifest: Damaged) => void> = {
  rows: ({ tables }) => Object.assign(tables, { workspaces_workspace: 7 }),
  table: ({ tables }) => Object.assign(tables, { other: 0 }),
  hash: ({ files }) => Object.assign(files[0], { sha256: '0'.repeat(64) }),
  mode: ({ files }) => Object.assign(files[0], { mode: 0o777 }),
  home: manifest => Object.assign(manifest, { home_id: 'other' }),
  missing: ({ files }) => files.pop(),
  form: manifest => Object.assign(manifest, { files: 'none' }),
}
for (const [what, change] of Object.entries(changes))
  test(`a manifest with a changed ${what} and the right hash is found`, async ({ w, file, bytes }) => {
    await writeFile(file, withManifest(bytes, change))
    assert.is(await codeOf(w.verify(file)), 'backup_damaged')
  })

const later = {
  format: (manifest: Record<string, unknown>) => Object.assign(manifest, { format: 3 }),
  schema: (manifest: Record<string, unknown>) =>
    (manifest.migrations as unknown[]).push(['workspaces', '999-later', 'f'.repeat(64)]),
}
for (const [what, change] of Object.entries(later))
  test(`a backup with a later ${what} is refused as newer`, async ({ w, file, bytes }) => {
    await writeFile(file, withManifest(bytes, change))
    assert.is(await codeOf(w.verify(file)), 'backup_newer')
  })

test.run()
