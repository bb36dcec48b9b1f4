import { execFileSync } from 'node:child_process'
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { type JsonFile, type JsonFileOptions, jsonFile, jsonFileSync } from '../../../kernel/kit/index.js'
import { hostileFiles } from '../../fixtures/hostile-files.js'
import { codeOf, inFolder } from '../store/harness.js'

const Counted = v.object({ count: v.number() })
type Counted = v.InferOutput<typeof Counted>
const NONE = { count: 0 }

/** Both forms, the one that returns at once behind promises. */
const forms: Readonly<Record<string, (file: string, options?: JsonFileOptions) => JsonFile<Counted, Counted>>> = {
  awaited: (file, options) => jsonFile(file, Counted, NONE as Counted, options),
  'at once': (file, options) => {
    const sync = jsonFileSync(file, Counted, NONE as Counted, options)
    return { read: async () => sync.read(), write: async document => sync.write(document) }
  },
}

for (const [form, open] of Object.entries(forms)) {
  test(`${form}: a missing file gives the default, and a written one is private to its owner`, () =>
    inFolder(async folder => {
      const name = path.join(folder, 'a.json')
      const file = open(name)
      assert.equal(await file.read(), NONE)
      assert.equal(await readdir(folder), [], 'reading writes nothing')
      await file.write({ count: 7 })
      await file.write({ count: 8 })
      assert.is(await readFile(name, 'utf8'), '{"count":8}\n')
      assert.is((await stat(name)).mode & 0o777, 0o600)
      assert.equal(await readdir(folder), ['a.json'])
      assert.equal(await open(name).read(), { count: 8 })
      await rm(name)
      assert.equal(await file.read(), NONE, 'what was read before is not kept')
    }))

  test(`${form}: an invalid file is named, gives no default, and is not changed`, () =>
    inFolder(async folder => {
      const name = path.join(folder, 'a.json')
      for (const text of ['', '{"count":', '{"count":"7"}', 'null', '[]', '{"hidden":1}']) {
        await writeFile(name, text)
        const error = await open(name)
          .read()
          .catch(thrown => thrown)
        assert.is(error.code, 'file_unreadable', text)
        assert.match(error.message, name)
        assert.is(await readFile(name, 'utf8'), text)
      }
      await writeFile(name, JSON.stringify({ count: 1, more: 'x'.repeat(100) }))
      assert.is(await codeOf(() => open(name, { maxBytes: 100 }).read()), 'file_too_large')
    }))

  test(`${form}: a symbolic link is not followed, and a non-file is replaced`, () =>
    inFolder(async folder => {
      const name = path.join(folder, 'a.json')
      const target = path.join(folder, 'target')
      await writeFile(target, '{"count":1}')
      await symlink('target', name)
      assert.is(await codeOf(() => open(name).read()), 'file_not_regular')
      await open(name).write({ count: 2 })
      assert.equal(await open(name).read(), { count: 2 })
      assert.is(await readFile(target, 'utf8'), '{"count":1}')
    }))

  test(`${form}: a non-file is refused on read and replaced on write, a folder never`, async () => {
    for (const { name: what, put } of hostileFiles.filter(({ refused }) => refused !== 'none')) {
      await inFolder(async folder => {
        const name = path.join(folder, 'a.json')
        const end = await put(name)
        try {
          const isLarge = what.startsWith('a sparse file')
          assert.is(await codeOf(() => open(name).read()), isLarge ? 'file_too_large' : 'file_not_regular', what)
          if (what === 'a folder') {
            assert.is(await codeOf(() => open(name).write({ count: 3 })), 'EISDIR')
            assert.equal(await readdir(folder), ['a.json'], 'nothing is left beside it')
            return
          }
          await open(name).write({ count: 3 })
          assert.equal(await open(name).read(), { count: 3 }, what)
        } finally {
          end()
        }
      })
    }
  })

  test(`${form}: a leftover under the temporary name does not prevent a write and is not written to`, () =>
    inFolder(async folder => {
      const name = path.join(folder, 'a.json')
      const temporary = path.join(folder, '.a.json.tmp')
      const victim = path.join(folder, 'victim')
      await writeFile(victim, 'untouched')
      const left = [
        () => writeFile(temporary, '{"cou', { mode: 0o666 }),
        () => symlink('victim', temporary),
        () => mkdir(path.join(temporary, 'deep'), { recursive: true }),
        async () => void execFileSync('mkfifo', [temporary]),
      ]
      for (const leave of left) {
        await leave()
        await open(name).write({ count: 4 })
        assert.equal(await open(name).read(), { count: 4 })
        assert.is((await stat(name)).mode & 0o777, 0o600)
        assert.equal((await readdir(folder)).sort(), ['a.json', 'victim'])
      }
      assert.is(await readFile(victim, 'utf8'), 'untouched')
    }))
}

test('concurrent writers share no temporary file: the document is always whole', () =>
  inFolder(async folder => {
    const name = path.join(folder, 'a.json')
    const writers = Array.from({ length: 8 }, (_, n) => jsonFile(name, Counted, null, { writer: String(n) }))
    await Promise.all(
      writers.map(async (file, n) => {
        for (let round = 0; round < 20; round++) {
          await file.write({ count: n })
          assert.type((await file.read())?.count, 'number')
        }
      }),
    )
    assert.equal(await readdir(folder), ['a.json'])
  }))

test.run()
