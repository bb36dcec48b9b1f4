import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const page = readFileSync(path.join(root, 'docs/retention.md'), 'utf8')

/** Names of the tables that sources below a folder create. */
function tablesBelow(folder: string): string[] {
  return readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && entry.name.endsWith('.ts'))
    .flatMap(entry => {
      const text = readFileSync(path.join(entry.parentPath, entry.name), 'utf8')
      return [...text.matchAll(/CREATE TABLE (?:IF NOT EXISTS )?([a-z_]+)/g)].map(([, name]) => name ?? '')
    })
}

test('docs/retention.md states the retention of every table, and names no other', () => {
  // The self-test of the store has a database of its own.
  const tables = [...tablesBelow('kernel'), ...tablesBelow('plugins')].filter(name => name !== 'self_test')
  assert.ok(tables.length > 100)
  const [, section = ''] = page.split('## Tables')
  const [rows = ''] = section.split('## Journals')
  const named = [...rows.matchAll(/`([a-z]+_[a-z_]+)`/g)].map(([, name]) => name ?? '')
  assert.equal(named.toSorted(), [...new Set(tables)].toSorted())
})

test.run()
