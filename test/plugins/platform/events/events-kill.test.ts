// proof: kills while events are moved
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inFolder, openLog, range } from './event-log.js'

/** `npm run prove:models` has more. */
const KILLS = Number(process.env.KILLS ?? 5)

/** Starts the writer, kills it some time after that many lines; returns what it said. */
async function killWriter(script: string, folder: string, lines: number): Promise<string[]> {
  const child = spawn(process.execPath, [script, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  let output = ''
  child.stdout.on('data', chunk => {
    output += chunk
    if (output.split('\n').length > lines) setTimeout(() => child.kill('SIGKILL'), Math.random() * 3)
  })
  assert.equal(await exited, [null, 'SIGKILL'])
  return output.split('\n').slice(0, -1)
}

test(`kill -9 at ${KILLS} points of moving events: each is stored once, in order, counted once, handled at least once`, () =>
  inFolder(async folder => {
    const bundle = await mkdtemp(
      path.join(fileURLToPath(new URL('../../../../', import.meta.url)), 'node_modules/.svc-events-'),
    )
    const handled = new Set<number>()
    let acknowledged = 0
    try {
      const script = path.join(bundle, 'writer.mjs')
      await build({
        entryPoints: [fileURLToPath(new URL('event-writer.ts', import.meta.url))],
        outfile: script,
        bundle: true,
        platform: 'node',
        format: 'esm',
        packages: 'external',
        logLevel: 'error',
      })
      for (let kill = 1; kill <= KILLS; kill++) {
        const lines = await killWriter(script, folder, 20 + Math.random() * 200)
        const told = (what: string) =>
          lines.filter(line => line.startsWith(`${what} `)).map(line => Number(line.split(' ')[1]))
        acknowledged = Math.max(acknowledged, ...told('acknowledged'), ...told('last'))
        assert.equal(told('gap'), [])
        const now = told('handled')
        assert.ok(now.length === 0 || now[0]! <= Math.max(0, ...handled) + 1, `skipped before ${now[0]}`)
        assert.equal(now, now.length === 0 ? [] : range(now[0]!, now.at(-1)!))
        for (const seq of now) handled.add(seq)

        if (kill % 3 !== 0) continue
        const { log, faults, all, clock, close } = await openLog(folder, { limits: { keepRows: 30, chunkRows: 10 } })
        assert.ok(log.last >= acknowledged, `${log.last} of ${acknowledged}`)
        const events = await all()
        assert.equal(
          events.map(event => [event.seq, (event.payload as { n: number }).n]),
          range(1, log.last).map(n => [n, n]),
        )
        const day = new Date(clock.now()).toISOString().slice(0, 10)
        for (const name of ['thing.made', 'thing.lost']) {
          const n = events.filter(event => event.name === name).length
          assert.equal(log.counts({ name, from: day, to: day }), [{ day, name, n }])
        }
        assert.ok(log.first() > 1 && log.first() <= log.last - 30 + 1, `first ${log.first()} of ${log.last}`)
        assert.equal(faults, [])
        await close()
      }
    } finally {
      await rm(bundle, { recursive: true, force: true })
    }
    // Each life writes 20 lines at least; most of them acknowledge.
    assert.ok(acknowledged > 10 * KILLS, `${acknowledged} acknowledged`)
    assert.ok(handled.size > 5 * KILLS, `${handled.size} handled`)
  }))

test.run()
