import { chmod, mkdir, readdir, readFile, readlink, rename, stat, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { textFile } from '../../../../plugins/platform/files/text-file.js'
import { hostileFiles } from '../../../fixtures/hostile-files.js'
import { codeOf, inFolder } from '../../../kernel/store/harness.js'

test('a text file is read and replaced whole, without leftovers', () =>
  inFolder(async folder => {
    const name = path.join(folder, 'notes.txt')
    const file = textFile(name, { mode: 0o640 })
    assert.is(await file.read(), undefined)
    await file.write('ä // text stays text\n')
    assert.is(await file.read(), 'ä // text stays text\n')
    assert.is((await stat(name)).mode & 0o777, 0o640)
    await file.write('')
    assert.is(await file.read(), '')
    assert.equal(await readdir(folder), ['notes.txt'])
  }))

test('writes run one after the other, and the last one stays', () =>
  inFolder(async folder => {
    const file = textFile(path.join(folder, 'a'))
    await Promise.all(Array.from({ length: 30 }, (_, i) => file.write(String(i).repeat(1000))))
    assert.is(await file.read(), '29'.repeat(1000))
  }))

test('permissions and links stay, and a leftover of a crash is ignored', () =>
  inFolder(async folder => {
    const target = path.join(folder, 'target.json')
    const link = path.join(folder, 'link.json')
    await writeFile(target, 'old')
    await chmod(target, 0o604)
    await symlink('target.json', link)
    await symlink('/etc/hosts', path.join(folder, '.target.json.tmp'))
    await textFile(link).write('new')
    assert.is(await readlink(link), 'target.json')
    assert.is(await readFile(target, 'utf8'), 'new')
    assert.is((await stat(target)).mode & 0o777, 0o604)
    assert.equal((await readdir(folder)).sort(), ['link.json', 'target.json'])
  }))

test('a crash during a write leaves the previous text, also behind a link', () =>
  inFolder(async folder => {
    const name = path.join(folder, 'a.json')
    await symlink('a.json', path.join(folder, 'link.json'))
    for (const file of [textFile(name), textFile(path.join(folder, 'link.json'))]) {
      await writeFile(name, 'old')
      await rename(name, path.join(folder, '.a.json.taken'))
      assert.is(await file.read(), 'old')
      await writeFile(path.join(folder, '.a.json.taken'), 'older')
      assert.is(await file.read(), 'old', 'the new one had its name already')
      assert.equal((await readdir(folder)).sort(), ['a.json', 'link.json'])
    }
  }))

test('an unreadable or unwritable file is reported, and the next write is not blocked', () =>
  inFolder(async folder => {
    assert.is(await codeOf(() => textFile(folder).read()), 'file_not_regular')
    const file = textFile(path.join(folder, 'sub', 'a'))
    assert.is(await codeOf(() => file.write('x')), 'file_unwritable')
    await mkdir(path.join(folder, 'sub'))
    await file.write('x')
    assert.is(await file.read(), 'x')
  }))

test('a non-file is reported on read and replaced on write, a device behind a link never', async () => {
  for (const { name, refused, put } of hostileFiles.filter(({ refused }) => refused !== 'none')) {
    await inFolder(async folder => {
      const at = path.join(folder, 'file')
      const end = await put(at)
      const file = textFile(at)
      if (refused === 'missing') assert.is(await file.read(), undefined)
      else assert.is(await codeOf(() => file.read()), refused, name)
      if (name === 'a folder') assert.is(await codeOf(() => file.write('x')), 'file_unwritable')
      else {
        await file.write('x')
        assert.is(await file.read(), 'x', name)
      }
      end()
    })
  }
  assert.ok((await stat('/dev/zero')).isCharacterDevice())
})

test.run()
