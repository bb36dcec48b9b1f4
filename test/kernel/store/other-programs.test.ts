import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { codeOf, inFolder, openAt, rowsById, stockCheck, withStore, writeThree } from './harness.js'

const run = promisify(execFile)
const sqlite = (folder: string, sql: string) =>
  run('sqlite3', [path.join(folder, 'svc.db'), sql]).then(
    ({ stdout }) => stdout,
    error => String(error.stderr),
  )

const STATEMENTS = [
  'SELECT count(*) FROM kernel_row',
  'DELETE FROM kernel_row',
  'VACUUM',
  'PRAGMA wal_checkpoint(TRUNCATE)',
  'PRAGMA journal_mode = DELETE',
]

test('the stock sqlite3 gets a locked database, and nothing acknowledged is lost', () =>
  withStore(async (store, folder) => {
    let id = 0
    let over = false
    const load = (async () => {
      while (!over) await writeThree(store, id++)
    })()
    for (const statement of [...STATEMENTS, `.backup ${path.join(folder, 'copy.db')}`])
      assert.match(await sqlite(folder, statement), /locked/, statement)
    over = true
    await load
    assert.ok(existsSync(path.join(folder, 'svc.db-wal')))
    assert.is(store.status().failed, undefined)
    await writeThree(store, id++)
    assert.is(rowsById(store).size, id)
    assert.is(await stockCheck(folder), 'ok')
  }))

test('the file can be read directly after a checkpoint while the store is open', () =>
  withStore(async (store, folder) => {
    for (let id = 0; id < 5; id++) await writeThree(store, id)
    await store.checkpoint()
    const uri = `file:${path.join(folder, 'svc.db')}?immutable=1`
    const { stdout } = await run('sqlite3', [uri, 'SELECT count(*) FROM kernel_row'])
    assert.is(stdout.trim(), '15')
    await writeThree(store, 5)
    assert.is(rowsById(store).size, 6)
  }))

test('a store opened by another program is not opened, and a closed one is free', () =>
  inFolder(async folder => {
    await (await openAt(folder)).close()
    const reader = spawn('sqlite3', [path.join(folder, 'svc.db')], { stdio: ['pipe', 'pipe', 'ignore'] })
    reader.stdin.write('BEGIN; SELECT count(*) FROM kernel_row;\n')
    await once(reader.stdout, 'data')
    assert.is(await codeOf(() => openAt(folder)), 'store_in_use')
    const refused = await openAt(folder).catch(error => error)
    assert.match(refused.message, new RegExp(`the program with pid ${reader.pid}$`))
    reader.stdin.end()
    await once(reader, 'exit')
    await (await openAt(folder)).close()
  }))

test('two stores of one file exclude each other, also in one process', () =>
  withStore(async (_, folder) => {
    assert.is(await codeOf(() => openAt(folder)), 'store_in_use')
  }))

test('a store owned by another process meanwhile acknowledges nothing', () =>
  inFolder(async folder => {
    let isOwner = true
    const checkOwner = () => {
      if (!isOwner) throw new Error('another process owns it')
    }
    const store = await openAt(folder, { checkOwner })
    await writeThree(store, 1)
    isOwner = false
    assert.is(await codeOf(() => writeThree(store, 2)), 'store_failed')
    assert.match((await store.failed).message, /another process owns it/)
    await store.close()
    const after = await openAt(folder)
    assert.equal([...rowsById(after).keys()], [1])
    await after.close()
  }))

test.run()
