import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inFolder, openAt, rowsById, stockCheck } from './harness.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** Starts the writer, kills it after a number of acknowledgements and a moment; returns what it acknowledged. */
async function killWriter(
  script: string,
  file: string,
  firstId: number,
  after: number,
  waitMs: number,
): Promise<number[]> {
  const child = spawn(process.execPath, [script, file, String(firstId)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  let output = ''
  let killing = false
  child.stdout.on('data', chunk => {
    output += chunk
    if (killing || output.split('\n').length <= after) return
    killing = true
    setTimeout(() => child.kill('SIGKILL'), waitMs)
  })
  assert.equal(await exited, [null, 'SIGKILL'])
  return output.split('\n').slice(0, -1).map(Number)
}

test('kill -9 at 20 points: what was acknowledged is there, transactions are whole, the stock sqlite3 reads the files', () =>
  inFolder(async folder => {
    await (await openAt(folder)).close()
    const file = path.join(folder, 'svc.db')
    // Bundled, so that a start is cheap; below the project, so that its packages are found.
    const bundle = await mkdtemp(path.join(root, 'node_modules/.svc-kill-test-'))
    const acknowledged = new Set<number>()
    try {
      const script = path.join(bundle, 'writer.mjs')
      await build({
        entryPoints: [fileURLToPath(new URL('fixtures/writer.ts', import.meta.url))],
        outfile: script,
        bundle: true,
        platform: 'node',
        format: 'esm',
        packages: 'external',
        logLevel: 'error',
      })
      for (let round = 0; round < 20; round++) {
        const ids = await killWriter(script, file, round * 100_000, Math.random() * 120, Math.random() * 4)
        for (const id of ids) acknowledged.add(id)
        assert.is(await stockCheck(folder), 'ok', `round ${round}`)
        if (round % 5 !== 4) continue
        const store = await openAt(folder)
        const rows = rowsById(store)
        assert.equal(
          [...acknowledged].filter(id => rows.get(id) !== 3),
          [],
          `lost by round ${round}`,
        )
        assert.equal(
          [...rows].filter(([, count]) => count !== 3),
          [],
          `torn by round ${round}`,
        )
        assert.equal(store.db.rows('SELECT * FROM pragma_integrity_check'), [['ok']])
        await store.close()
      }
    } finally {
      await rm(bundle, { recursive: true, force: true })
    }
    assert.ok(acknowledged.size > 200, `${acknowledged.size} acknowledged`)
  }))

test.run()
