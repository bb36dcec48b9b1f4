import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { TASK_TABLES } from '../../../../plugins/work/tasks/tables.js'
import { sourcesBelow } from '../../../harness/source.js'

const root = path.resolve('.')
/** Statements about the rows of one task, as they stand in the sources; those that are put together at run time are left out. */
const statements = sourcesBelow(root, 'plugins/work/tasks').flatMap(({ file }) =>
  [...readFileSync(path.join(root, file), 'utf8').matchAll(/(["`])((?:SELECT|UPDATE) [^"`]*\btask_id = \?[^"`]*)\1/g)]
    .map(([, , sql = '']) => sql)
    .filter(sql => !sql.includes('${')),
)

/** SQLite without an owner's rules, which allow no EXPLAIN. */
interface PlainDatabase {
  run(sql: string): void
  exec(sql: string): readonly { readonly values: readonly (readonly unknown[])[] }[]
}
const sqlite: { readonly Database: new () => PlainDatabase } = await createRequire(import.meta.url)('sql.js')()
const db = new sqlite.Database()
for (const { sql } of TASK_TABLES) db.run(sql)
const planOf = (sql: string) =>
  (db.exec(`EXPLAIN QUERY PLAN ${sql}`)[0]?.values ?? []).map(row => String(row[3])).join('; ')
/** Walks through what other tasks have. */
const isWide = (sql: string) =>
  /\bSCAN tasks_|USING (?:COVERING )?INDEX tasks_run_(?:status|free|active)/.test(planOf(sql))

test('queries for one task use its index, not the index of all queued runs', () => {
  assert.ok(statements.length >= 8, `${statements.length} statements were found`)
  assert.equal(statements.filter(isWide), [])
})

test('runs that need a session are read in order from a partial index', () => {
  const source = readFileSync(path.join(root, 'plugins/work/tasks/workers/workers.ts'), 'utf8')
  const wanted = /`(SELECT r\.\* [^`]*profiled[^`]*) LIMIT/.exec(source)?.[1] ?? ''
  assert.match(planOf(wanted), /USING INDEX tasks_run_profiled/)
  assert.not.match(planOf(wanted), /TEMP B-TREE|SCAN tasks_task/)
})

test('without the plus, SQLite reads all queued runs for a condition on the status', () => {
  assert.ok(isWide("UPDATE tasks_run SET claimable = ? WHERE task_id = ? AND status = 'queued'"))
})

test('the inbox reads its candidates from indexes and does not scan completed tasks', () => {
  const source = readFileSync(path.join(root, 'plugins/work/tasks/views/inbox.ts'), 'utf8')
  const candidates = /const CANDIDATES = `([^`]*)`/.exec(source)?.[1] ?? ''
  const inOrder = (sql: string) => planOf(`SELECT count(*) FROM (${sql}) c JOIN tasks_task t ON t.rowid = c.task`)
  assert.ok(inOrder(candidates).includes('tasks_task_failed'))
  assert.not.ok(/\bSCAN tasks_\w+(?! USING)\b/.test(inOrder(candidates)), inOrder(candidates))
  // Without the hint it does not.
  assert.ok(/\bSCAN tasks_\w+(?! USING)\b/.test(inOrder(candidates.replace(' INDEXED BY tasks_task_failed', ''))))
})

test('pending user decisions are read from indexes and do not scan blocked or completed tasks', () => {
  const source = readFileSync(path.join(root, 'plugins/work/tasks/views/waiting.ts'), 'utf8')
  const reads = [...source.matchAll(/^const [A-Z]+ = `(SELECT [^`]*)`/gm)].map(([, sql = '']) => sql)
  assert.is(reads.length, 4)
  for (const sql of reads) {
    const plan = planOf(`${sql} LIMIT +?`)
    assert.not.match(plan, /\bSCAN \w+(?! USING)\b|tasks_task_status|TEMP B-TREE FOR ORDER/, plan)
  }
})

test.run()
