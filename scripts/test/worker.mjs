// Runs the test files that the runner names, one at a time: `node worker.mjs [bundle]`. A file has ended when its tests are done
// and nothing keeps the process alive, as if it had its own process.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { changesSince, stateOf } from './process-state.mjs'
import { root } from './sources.mjs'

// uvu reads this when loaded: it defers the tests until `exec`.
globalThis.UVU_DEFER = 1
const { exec } = await import('uvu')
const bundle = process.argv[2]
const { modules } = bundle === undefined ? {} : await import(pathToFileURL(bundle))

const require = createRequire(import.meta.url)
/** Time for a failed file to end by itself. */
const failedMs = 5000
let running

process.on('message', async ({ file, alone, mark, replies }) => {
  if (process.env.SVC_TEST_REPLIES !== undefined) process.env.SVC_TEST_REPLIES = replies
  running = { mark, alone, ended: false, before: stateOf() }
  // Only the file's own handles may keep the process alive.
  process.channel.unref()
  globalThis.UVU_QUEUE = [[null]]
  globalThis.UVU_INDEX = 0
  process.argv.splice(1, Infinity, join(root, file))
  try {
    await (modules === undefined ? import(pathToFileURL(join(root, file))) : modules[file]())
    if (globalThis.UVU_QUEUE[0].length > 1) await exec()
  } catch (error) {
    console.error(error)
    process.exitCode = 1
  }
  // esbuild keeps a child process for the next build.
  require.cache[require.resolve('esbuild')]?.exports.stop()
  running.ended = true
  // A failed test did not close what it opened. Its process gets no further file, so nothing waits for the file's time limit.
  if (process.exitCode) setTimeout(() => process.exit(), failedMs).unref()
})

process.on('beforeExit', () => {
  // Without a report the process exits here: after a file that runs alone, and when tests wait for a promise that never resolves.
  if (running === undefined || running.alone || !running.ended) return
  const { mark, before } = running
  running = undefined
  const code = process.exitCode ?? 0
  process.exitCode = undefined
  const line = `\n${mark} ${JSON.stringify({ code, changes: changesSince(before), rss: process.memoryUsage.rss() })}\n`
  process.stderr.write(line)
  process.stdout.write(line)
  process.channel.ref()
})
process.send('ready')
