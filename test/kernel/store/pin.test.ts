import { execFileSync } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { FAST_TEXTS, loadEngine } from '../../../kernel/store/engine.js'
import { selfTest } from '../../../kernel/store/self-test.js'
import { type FileCall, SQLITE_PIN } from '../../../kernel/store/sqlite-pin.js'
import { codeOf, inFolder, openAt, rowsById, withStore, writeThree } from './harness.js'

const require = createRequire(import.meta.url)
const wasmPath = path.join(path.dirname(require.resolve('sql.js/dist/sql-wasm.js')), 'sql-wasm.wasm')

test('the script finds the pinned version', () => {
  const script = fileURLToPath(new URL('../../../scripts/sqljs-pin.mjs', import.meta.url))
  assert.equal(JSON.parse(execFileSync(process.execPath, [script, '--json'], { encoding: 'utf8' })), SQLITE_PIN)
})

test('another wasm file is refused before anything is created', () =>
  inFolder(async folder => {
    const other = path.join(folder, 'other.wasm')
    const bytes = await readFile(wasmPath)
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
    await writeFile(other, bytes)
    const open = () => openAt(path.join(folder, 'home'), { engine: { wasmPath: other } })
    assert.is(await codeOf(open), 'sqlite_pin')
    await open().catch(error => {
      assert.match(error.message, 'is not the SQLite build that this program was made for')
      assert.match(error.hint, 'npm run sqljs:pin')
    })
    assert.equal(await readdir(folder), ['other.wasm'])
  }))

test('an exchange of any two file calls is refused by the self-test before anything is created', async () => {
  const calls = Object.keys(SQLITE_PIN.imports) as FileCall[]
  const passed: string[] = []
  for (const [i, one] of calls.entries()) {
    for (const other of calls.slice(i + 1)) {
      const { [one]: first, [other]: second } = SQLITE_PIN.imports
      const pin = { ...SQLITE_PIN, imports: { ...SQLITE_PIN.imports, [one]: second, [other]: first } }
      const code = await codeOf(async () => selfTest(await loadEngine({ pin })))
      if (code !== 'sqlite_self_test') passed.push(`${one} and ${other}: ${code}`)
    }
  }
  assert.equal(passed, [])
  await inFolder(async folder => {
    const { fd_write, fd_read } = SQLITE_PIN.imports
    const pin = { ...SQLITE_PIN, imports: { ...SQLITE_PIN.imports, fd_write: fd_read, fd_read: fd_write } }
    assert.is(await codeOf(() => openAt(folder, { engine: { pin } })), 'sqlite_self_test')
    assert.equal(await readdir(folder), [])
  })
})

test('a name that the build lacks is refused', async () => {
  const pin = { ...SQLITE_PIN, imports: { ...SQLITE_PIN.imports, fd_sync: 'none' } }
  assert.is(await codeOf(() => loadEngine({ pin })), 'sqlite_pin')
})

test('two stores and a plain sql.js in one process are independent', () =>
  withStore(async one =>
    withStore(async two => {
      const plain = await require('sql.js')()
      const db = new plain.Database()
      db.run('CREATE TABLE kernel_row (id INTEGER); INSERT INTO kernel_row VALUES (1)')
      const before = two.status()
      await Promise.all([writeThree(one, 1), writeThree(one, 2)])
      assert.is(two.status().syncs, before.syncs)
      assert.equal([...rowsById(two)], [])
      await Promise.all([writeThree(one, 3), writeThree(two, 9)])
      assert.equal([...rowsById(one).keys()], [1, 2, 3])
      assert.equal([...rowsById(two).keys()], [9])
      assert.equal(db.exec('SELECT id FROM kernel_row')[0].values, [[1]])
      db.close()
    }),
  ))

test('each replaced text occurs once in the source of sql.js', async () => {
  const source = await readFile(require.resolve('sql.js/dist/sql-wasm.js'), 'utf8')
  for (const [text] of FAST_TEXTS) assert.is(source.split(text).length, 2, text)
})

test('texts of any length and script are read as they were written, also when the memory grows', () =>
  withStore(async store => {
    const long = 'é漢😀x'.repeat(400_000)
    const texts = [
      '',
      'plain',
      'é',
      '漢字',
      '😀😀',
      'a\0b',
      '\ufeffmark',
      '\u0000',
      'x'.repeat(39),
      `${'x'.repeat(38)}漢`,
      'x'.repeat(40),
      '漢'.repeat(19_999),
      '漢'.repeat(20_000),
      'x'.repeat(70_000),
      long,
      `${long}${long}`,
    ]
    store.migrate('text', [{ id: '001', sql: 'CREATE TABLE text_one (id INTEGER PRIMARY KEY, text TEXT) STRICT' }])
    await store.db.tx(t => {
      for (const text of texts) t.run('INSERT INTO text_one (text) VALUES (?)', [text])
    })
    const rows = store.db.rows('SELECT text, length(CAST(text AS BLOB)) FROM text_one ORDER BY id')
    for (const [n, text] of texts.entries()) {
      assert.ok(rows[n]?.[0] === text, `text ${n}`)
      assert.is(rows[n]?.[1], Buffer.byteLength(text))
    }
    const half = store.db.row('SELECT ?, length(CAST(? AS BLOB))', ['a\ud800b', 'a\ud800b'])
    assert.equal(half, ['a\ufffdb', 5])
  }))

test.run()
