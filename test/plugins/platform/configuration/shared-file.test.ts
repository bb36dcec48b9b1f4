import { spawn } from 'node:child_process'
import { renameSync, writeFileSync } from 'node:fs'
import { open, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { exchange, settle } from '../../../../plugins/platform/configuration/save/exchange.js'
import { sharedFile } from '../../../../plugins/platform/configuration/save/shared-file.js'
import { swap } from '../../../../plugins/platform/configuration/save/swap.js'
import { textFile } from '../../../../plugins/platform/files/text-file.js'
import { codeOf, inFolder } from '../../../kernel/store/harness.js'

test('a write conditioned on an earlier text does not replace the save of an editor', () =>
  inFolder(async folder => {
    const name = path.join(folder, 'a.json')
    const file = sharedFile(textFile(name), name)
    await file.write('one', '')
    await file.write('two', 'one')
    assert.is(await codeOf(() => file.write('three', 'one')), 'file_changed')
    assert.is(await codeOf(() => file.write('three', '')), 'file_changed')
    assert.is(await file.read(), 'two')
    await rename(name, path.join(folder, 'elsewhere'))
    assert.is(await codeOf(() => file.write('three', 'two')), 'file_changed')
    assert.is(await file.read(), undefined)
    assert.equal(await readdir(folder), ['elsewhere'])
  }))

test('a file is replaced only once its write is ready, and not if that fails', () =>
  inFolder(async folder => {
    const name = path.join(folder, 'a.json')
    const file = sharedFile(textFile(name), name)
    await file.write('one', '')
    let begin = () => {}
    const written = file.write('two', 'one', new Promise<void>(resolve => (begin = resolve)))
    while ((await readFile(path.join(folder, '.a.json.tmp'), 'utf8').catch(() => '')) !== 'two');
    assert.is(await file.read(), 'one')
    begin()
    await written
    assert.is(await file.read(), 'two')
    const failed = Promise.reject(new Error('not ready'))
    failed.catch(() => {})
    assert.is(await codeOf(() => file.write('three', 'two', failed)), 'file_unwritable')
    assert.is(await file.read(), 'two')
    assert.equal(await readdir(folder), ['a.json'])
  }))

test('a file replaced repeatedly exists at every moment', () =>
  inFolder(async folder => {
    const name = path.join(folder, 'a.json')
    const file = sharedFile(textFile(name), name)
    await file.write('0', '')
    const code = `for (const fs = require('fs'), end = Date.now() + 20000; Date.now() < end; ) {
      const text = fs.readFileSync(process.argv[1], 'utf8')
      if (text === 'end') process.exit(0)
      if (text === '') process.exit(3)
    }`
    const reader = spawn(process.execPath, ['-e', code, name], { stdio: 'inherit' })
    const ended = new Promise(resolve => reader.once('exit', resolve))
    await new Promise(resolve => reader.once('spawn', resolve))
    for (let n = 0; n < 2000; n++) await file.write(String(n + 1), String(n))
    await file.write('end', '2000')
    assert.is(await ended, 0)
    assert.equal(await readdir(folder), ['a.json'])
  }))

test('a save by an editor before a rename is kept, whether as a new file or in place', () =>
  inFolder(async folder => {
    const name = path.join(folder, 'a.json')
    const saves = [
      () => writeFileSync(name, 'save 1'), // before the first swap
      () => writeFileSync(name, 'save 2'), // into ours, which stands there
      () => {
        writeFileSync(path.join(folder, 'editor'), 'save 3')
        renameSync(path.join(folder, 'editor'), name)
      },
    ]
    for (let many = 1; many <= saves.length; many++) {
      await writeFile(name, 'old')
      await writeFile(path.join(folder, 'new'), 'new')
      const left = saves.slice(0, many)
      const swapped = (one: string, other: string) => {
        left.shift()?.()
        return swap(one, other)
      }
      assert.throws(
        () => exchange(path.join(folder, 'new'), name, 'old', 1000, swapped),
        (error: { code: string }) => error.code === 'file_changed',
      )
      assert.is(await readFile(name, 'utf8'), `save ${many}`)
      assert.equal(await readdir(folder), ['a.json'])
    }
  }))

test('an editor that writes into its open file during a replacement keeps its text', () =>
  inFolder(async folder => {
    const name = path.join(folder, 'a.json')
    await writeFile(name, 'old')
    await writeFile(path.join(folder, 'new'), 'new')
    const editor = await open(name, 'r+')
    exchange(path.join(folder, 'new'), name, 'old', 1000)
    assert.is(await readFile(name, 'utf8'), 'new')
    await editor.write('EDITED', 0)
    await editor.close()
    assert.throws(
      () => settle(name, 'old', 1000),
      (error: { code: string }) => error.code === 'file_changed',
    )
    assert.is(await readFile(name, 'utf8'), 'EDITED')
    assert.equal(await readdir(folder), ['a.json'])
  }))

test.run()
