import { mkdir, realpath, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Leaks } from '../../../../testing/leaks.js'
import { temporaryFolder } from '../../../harness/kernel.js'

/** Each makes one thing on a line of its own and returns what ends it. */
const CODE = `import { spawn } from 'node:child_process'
import net from 'node:net'
const ready = (thing, event) => new Promise(resolve => thing.once(event, () => resolve(thing)))
export const things = {
  timer() { const timer = setInterval(() => {}, 60_000)
    return () => clearInterval(timer) },
  unref() { const timer = setTimeout(() => {}, 60_000).unref()
    return () => clearTimeout(timer) },
  async server() { const server = await ready(net.createServer().listen(0), 'listening')
    return () => new Promise(resolve => server.close(resolve)) },
  async process() { const child = await ready(spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] }), 'spawn')
    return () => { child.kill(); return ready(child, 'close') } },
  listener() { const heard = () => {}; process.on('SIGWINCH', heard)
    return () => process.off('SIGWINCH', heard) },
}
`
const told: Readonly<Record<string, RegExp>> = {
  timer: /^a timer, made in main\.js:5:\d+$/,
  unref: /^a timer, made in main\.js:7:\d+$/,
  server: /^a listening socket, made in main\.js:9:\d+$/,
  process: /^a pipe, made in main\.js:11:\d+; a process, made in main\.js:11:\d+$/,
  listener: /a listener for a signal, made in main\.js:13:\d+; a listener, process\.on\('SIGWINCH'\)$/,
}

test('resources created past the kernel and not released are reported with the line; released ones are not', async () => {
  const home = await realpath(await temporaryFolder('leaks'))
  const folder = path.join(home, 'cache/extensions', 'a'.repeat(64), 'acme.leaky')
  await mkdir(folder, { recursive: true })
  await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }')
  await writeFile(path.join(folder, 'main.js'), CODE)
  const { things } = await import(pathToFileURL(path.join(folder, 'main.js')).href)
  assert.equal(Object.keys(told), Object.keys(things))
  for (const [name, expected] of Object.entries(told)) {
    const leaks = new Leaks()
    const end = await things[name]()
    const own = setInterval(() => {}, 60_000)
    assert.match((await leaks.left()).join('; '), expected)
    clearInterval(own)
    await end()
    assert.equal(await leaks.left(), [], name)
    leaks.end()
  }
  await rm(home, { recursive: true })
})

test.run()
