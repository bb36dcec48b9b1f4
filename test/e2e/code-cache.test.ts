// proof, timeout: 180s (starts daemons)
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Installed, until } from './installed.js'

const dist = fileURLToPath(new URL('../../dist', import.meta.url))
const note = fileURLToPath(new URL('../fixtures/note-code-cache.cjs', import.meta.url))

interface Starts {
  readonly at: Installed
  /** Starts and stops a daemon, under a further flag of V8; what V8 said of the code cache. */
  readonly started: (flag?: string, meanwhile?: () => Promise<unknown>) => Promise<string | undefined>
}

const test = suite<Starts>('the code cache of a daemon')
test.before.each(context => {
  const at = new Installed()
  const noted = join(at.folder, 'noted')
  const started: Starts['started'] = async (flag = '', meanwhile) => {
    const NODE_OPTIONS = `${at.env.NODE_OPTIONS ?? ''} --require ${note} ${flag}`
    const ran = await at.run(['daemon', 'start'], at.folder, { NODE_OPTIONS, NOTED: noted })
    assert.is(ran.code, 0, ran.stderr)
    await meanwhile?.()
    await at.svc('daemon', 'stop')
    return readFileSync(noted, 'utf8').trim().split('\n').at(-1)
  }
  Object.assign(context, { at, started })
})
test.after.each(({ at }) => at.remove())

/** Whether the build has a cache for this version of Node. */
function isBuilt(): boolean {
  const file = join(dist, 'run-daemon.cjs')
  const hash = createHash('sha256').update(readFileSync(file)).update(file).update(process.version).update(process.arch)
  return existsSync(join(dist, 'cache', `run-daemon-${hash.digest('hex')}`))
}

test('V8 accepts the cache of the build and the one that a start keeps in the home', async ({ at, started }) => {
  const folder = join(at.home, 'cache/code')
  const names = () => (existsSync(folder) ? readdirSync(folder).filter(name => !name.endsWith('.tmp')) : [])
  const kept = () =>
    until(
      () => names()[0],
      60_000,
      () => 'a code cache in the home',
    )
  if (isBuilt()) {
    assert.is(await started(), 'accepted')
    assert.equal(names(), [], 'an accepted cache is not written again')
  }
  // Under another flag the cache of the build is refused, and the home gets its own.
  const flag = '--stack-trace-limit=11'
  assert.is(await started(flag, kept), isBuilt() ? 'rejected' : 'none')
  assert.is(await started(flag), 'accepted')
})

test.run()
