import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { operator } from '../../../../kernel/plugin.js'
import type { Refusal } from '../../../../plugins/delivery/installer/errors.js'
import { limits } from '../../../../plugins/delivery/installer/source/limits.js'
import { sha256 } from '../../../../plugins/delivery/installer/source/tree.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { contents, faultFrom, files, scene } from './scene.js'
import { END, type Entry, entry, manifest, pax, sealed, tarball } from './tarball.js'

const own: Entry = { path: 'extension.toml', body: manifest() }
const long = 'n'.repeat(limits.nameBytes + 1)
const deep = `${'d/'.repeat(limits.depth + 1)}f`
const named = (name: string): Buffer => Buffer.concat([pax({ path: name }), entry({ path: 'short', body: 'x' })])
const gnuLongName = (name: string) => entry({ path: '././@LongLink', flag: 'L', body: `${name}\0` })
const changed = (change: (block: Buffer) => void) => {
  const block = entry({ path: 'a' })
  change(block)
  return block
}

const refusals: readonly (readonly [string, Refusal, Buffer])[] = [
  ['a parent path', 'parent_path', tarball(own, { path: '../escaped' })],
  ['a parent path within the folder', 'parent_path', tarball(own, { path: 'a/../../escaped' })],
  ['an absolute path', 'absolute_path', tarball(own, { path: '/tmp/escaped' })],
  ['a drive letter', 'drive_letter', tarball(own, { path: 'C:/escaped' })],
  ['a drive letter after the folder', 'drive_letter', tarball(own, { path: './C:/escaped' })],
  ['a backslash', 'backslash', tarball(own, { path: '..\\escaped' })],
  ['a symbolic link', 'link', tarball(own, { path: 'a', flag: '2', linkpath: '/etc' })],
  ['a hard link', 'hard_link', tarball(own, { path: 'a', flag: '1', linkpath: 'extension.toml' })],
  ['a character device', 'special_file', tarball(own, { path: 'a', flag: '3' })],
  ['a block device', 'special_file', tarball(own, { path: 'a', flag: '4' })],
  ['a fifo', 'special_file', tarball(own, { path: 'a', flag: '6' })],
  ['a sparse file', 'special_file', tarball(own, { path: 'a', flag: 'S' })],
  ['an unknown kind of entry', 'special_file', tarball(own, { path: 'a', flag: 'Z' })],
  ['names that differ only by case', 'name_collision', tarball(own, { path: 'A' }, { path: 'a' })],
  ['folders that differ only by case', 'name_collision', tarball(own, { path: 'A/x' }, { path: 'a/y' })],
  ['names with equal normal forms', 'name_collision', tarball(own, named('e\u0301'), named('\u00e9'))],
  ['a duplicate entry', 'duplicate', tarball(own, { path: 'a' }, { path: './a' })],
  ['one name as file and folder', 'duplicate', tarball(own, { path: 'a' }, { path: 'a/b' })],
  ['a folder in a file', 'duplicate', tarball(own, { path: 'a/b' }, { path: 'a' })],
  ['a name with invisible characters', 'odd_name', tarball(own, named('a\u202eb'))],
  ['a name with a line break', 'odd_name', tarball(own, { path: 'a\nb' })],
  [
    'a name that is not UTF-8',
    'odd_name',
    tarball(
      own,
      changed(block => sealed(block.fill(0xff, 0, 3))),
    ),
  ],
  ['a file without a name', 'odd_name', tarball(own, { path: '.' })],
  ['a name that ends in a dot', 'odd_name', tarball(own, { path: 'a.' })],
  ['git settings', 'git_settings', tarball(own, { path: '.git/config' })],
  ['git settings in a subfolder with capitals', 'git_settings', tarball(own, { path: 'a/.GIT', flag: '5' })],
  ['too many folder levels', 'too_deep', tarball(own, { path: deep })],
  ['a long name', 'too_long', tarball(own, named(long))],
  ['a long path', 'too_long', tarball(own, named(`${`${'p'.repeat(200)}/`.repeat(3)}f`))],
  [
    'too many entries',
    'too_many',
    tarball(own, ...Array.from({ length: limits.files }, (_, i) => ({ path: `f${i}` }))),
  ],
  ['a decompression bomb', 'bomb', tarball(own, { path: 'a', body: Buffer.alloc(3 * limits.ratioFrom) })],
  ['another file format', 'not_an_archive', Buffer.from('PK\x03\x04 something else')],
  ['a truncated gzip stream', 'truncated', tarball(own, { path: 'a', body: randomBytes(4000) }).subarray(0, 3000)],
  [
    'a tar truncated within a file',
    'truncated',
    gzipSync(entry({ path: 'a', body: 'x'.repeat(2000) }).subarray(0, 1024)),
  ],
  ['a tar without an end', 'truncated', gzipSync(entry(own))],
  ['half an end marker', 'truncated', gzipSync(Buffer.concat([entry(own), END.subarray(512)]))],
  ['garbage after the gzip stream', 'trailing_data', Buffer.concat([tarball(own), Buffer.alloc(100)])],
  ['an entry after the end', 'trailing_data', tarball(own, END, { path: '../escaped' })],
  ['an entry after half an end marker', 'trailing_data', tarball(own, END.subarray(512), { path: 'a' })],
  [
    'a wrong checksum',
    'header',
    tarball(
      own,
      changed(block => block.write('b', 0)),
    ),
  ],
  [
    'an invalid size',
    'header',
    tarball(
      own,
      changed(block => sealed(block.fill('z', 124, 136))),
    ),
  ],
  [
    'a negative size',
    'header',
    tarball(
      own,
      changed(block => sealed(block.fill(0xff, 124, 136))),
    ),
  ],
  ['a folder with a size', 'header', tarball(own, { path: 'a/', flag: '5', body: entry({ path: 'smuggled' }) })],
  ['a folder name with a size', 'header', tarball(own, { path: 'a/', body: entry({ path: 'smuggled' }) })],
  ['a size beyond the archive', 'truncated', tarball(own, { path: 'a', size: 99_999 })],
  ['a pax parent path', 'parent_path', tarball(own, named('../escaped'))],
  ['a GNU long name with a parent path', 'parent_path', tarball(own, gnuLongName('../escaped'), { path: 'a' })],
  ['a pax link', 'extended_header', tarball(own, pax({ linkpath: '/etc' }), { path: 'a' })],
  ['a pax size', 'extended_header', tarball(own, pax({ size: '0' }), { path: 'a', body: 'x' })],
  ['a pax sparse file', 'extended_header', tarball(own, pax({ 'GNU.sparse.name': '../x' }), { path: 'a' })],
  ['a global pax path', 'extended_header', tarball(own, pax({ path: 'a' }, 'g'), { path: 'b' })],
  ['a pax value with a line break', 'extended_header', tarball(own, pax({ comment: 'x\n9 path=a' }), { path: 'b' })],
  [
    'a pax attribute that contains a path',
    'extended_header',
    tarball(own, pax({ 'SCHILY.xattr.a': 'x\n9 path=a' }), { path: 'b' }),
  ],
  ['two pax headers', 'extended_header', tarball(own, pax({ path: 'a' }), pax({ path: 'b' }), { path: 'c' })],
  ['a pax header and a GNU name', 'extended_header', tarball(own, pax({ path: 'a' }), gnuLongName('b'), { path: 'c' })],
  ['a long pax header', 'extended_header', tarball(own, pax({ comment: 'c'.repeat(limits.paxBytes) }), { path: 'a' })],
  ['a pax header without an entry', 'truncated', tarball(own, pax({ path: 'a' }))],
  ['no entry', 'empty', tarball()],
]

const { installer, home, request: _, ...running } = await scene()
const work = await temporaryFolder('archives')
const archive = path.join(work, 'demo.tar.gz')
const inside = path.join(home, 'extensions')

test.after(async () => {
  await running.close()
  await rm(work, { recursive: true })
  await rm(home, { recursive: true, force: true })
})

for (const [what, reason, bytes] of refusals) {
  test(`an archive with ${what} is refused, and nothing of it is written`, async () => {
    await writeFile(archive, bytes)
    const fault = await faultFrom(installer.install({ path: archive }, operator))
    assert.is(fault.code, 'extension_content_refused', fault.stack)
    assert.is(fault.details?.reason, reason, fault.message)
    const isWhole = !['not_an_archive', 'truncated'].includes(reason)
    assert.is(fault.next?.startsWith('ask the author') ?? false, isWhole, fault.next)
    assert.equal(await contents(inside), {})
  })
}

test('an archive over the size limit is refused unread', async () => {
  await writeFile(archive, '')
  await truncate(archive, limits.archiveBytes + 1)
  const fault = await faultFrom(installer.install({ path: archive }, operator))
  assert.is(fault.details?.reason, 'too_large')
})

test('a harmless archive is installed: one enclosing folder is removed, long names and the executable bit stay', async () => {
  const deepName = `${'folder-with-a-long-name/'.repeat(8)}file`
  await writeFile(
    archive,
    tarball(
      pax({ comment: 'a commit' }, 'g'),
      { path: 'demo-1.0.0/', flag: '5' },
      { path: 'demo-1.0.0/extension.toml', body: manifest() },
      { path: 'demo-1.0.0/bin/run', body: '#!/bin/sh\n', mode: 0o755 },
      pax({ path: 'demo-1.0.0/\u00fcber', mtime: '1.5', 'LIBARCHIVE.xattr.com.apple.provenance': 'AQ' }),
      { path: 'x', body: 'pax' },
      gnuLongName(`demo-1.0.0/${deepName}`),
      { path: 'y', body: 'gnu' },
      Buffer.alloc(8192),
    ),
  )
  const bytes = await readFile(archive)
  const provenance = await installer.install({ path: archive, checksum: sha256(bytes).toUpperCase() }, operator)
  assert.is(provenance.decision, 'verified')
  assert.is(provenance.archiveDigest, sha256(bytes))
  const found = await contents(path.join(inside, 'demo'))
  assert.equal(Object.keys(found).sort(), ['bin/run', 'extension.toml', deepName, '\u00fcber'].sort())
  assert.is(found[deepName], 'gnu')
  assert.is((await stat(path.join(inside, 'demo/bin/run'))).mode & 0o777, 0o700)
  assert.is((await stat(path.join(inside, 'demo/extension.toml'))).mode & 0o777, 0o600)
  assert.ok((await installer.verify('demo', operator)).matches)
  for (const name of ['.git/config', 'bin/run']) {
    await files(path.join(inside, 'demo'), { [name]: 'changed' })
    assert.not.ok((await installer.verify('demo', operator)).matches, name)
    await rm(path.join(inside, 'demo', name))
  }
  await installer.remove('demo', {}, operator)
  assert.equal(await contents(inside), {})
})

test('an archive with another digest is refused before it is unpacked, whatever is allowed', async () => {
  // It does not unpack: had it been tried, the fault were another.
  await writeFile(archive, Buffer.concat([Buffer.from([0x1f, 0x8b]), randomBytes(100)]))
  const checksum = '0'.repeat(64)
  const fault = await faultFrom(installer.install({ path: archive, checksum, allowUnverified: true }, operator))
  assert.is(fault.code, 'extension_archive_digest_mismatch')
  for (const checksum of ['abc', 'z'.repeat(64), '0'.repeat(40)])
    assert.is(
      (await faultFrom(installer.install({ path: archive, checksum }, operator))).code,
      'extension_source_invalid',
    )
})

for (const [what, reason, make] of [
  ['a link', 'link', (folder: string) => symlink('/etc', path.join(folder, 'a'))],
  ['a symbolic link to its own file', 'link', (folder: string) => symlink('extension.toml', path.join(folder, 'a'))],
  [
    'a hard link',
    'hard_link',
    async (folder: string) => {
      await writeFile(path.join(work, 'secret'), 'secret')
      await link(path.join(work, 'secret'), path.join(folder, 'a'))
    },
  ],
  [
    'a socket',
    'special_file',
    async (folder: string) => {
      const server = createServer()
      await new Promise<void>(resolve => server.listen(path.join(folder, 's'), resolve))
      server.unref()
    },
  ],
  ['a name that is not UTF-8', 'odd_name', (folder: string) => mkdir(Buffer.from(`${folder}/\xff`, 'latin1'))],
  ['names that differ only by case', 'name_collision', (folder: string) => files(folder, { A: '', a: '' })],
  ['too many nested folders', 'too_deep', (folder: string) => files(folder, { [deep]: '' })],
] as const) {
  test(`a folder with ${what} is refused, and nothing of it is written`, async () => {
    const folder = await files(await temporaryFolder('folder'), { 'extension.toml': manifest() })
    await make(folder)
    const fault = await faultFrom(installer.install({ path: folder }, operator))
    assert.is(fault.details?.reason, reason, fault.message)
    assert.equal(await contents(inside), {})
    await rm(folder, { recursive: true })
  })
}

test.run()
