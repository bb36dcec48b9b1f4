// proof, timeout: 120s (starts 115 processes)
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../kernel/clock.js'
import { Fault } from '../../kernel/contract/errors.js'
import { acquireLock, lockHolder, readLock } from '../../kernel/lock/index.js'

const clock = systemClock()
const scratch = mkdtempSync(join(tmpdir(), 'svc-lock-'))
const contender = join(scratch, 'contender.mjs')
const children = new Set<ChildProcess>()
let homes = 0

function newHome(): string {
  const home = join(scratch, `home-${++homes}`)
  mkdirSync(home, { mode: 0o700 })
  return home
}

/** Waits for the barrier and the instant in it, tries once to get the lock, says what came of it, and if it won stays. */
const contenderSource = `
import { existsSync, readFileSync } from 'node:fs'
import { systemClock } from './kernel/clock.ts'
import { acquireLock } from './kernel/lock/index.ts'
const [home, barrier] = process.argv.slice(2)
console.log('ready')
const wait = ms => new Promise(done => setTimeout(done, ms))
while (!existsSync(barrier)) await wait(50)
await wait(Number(readFileSync(barrier, 'utf8')) - Date.now())
const clock = systemClock()
let attempts = 1
const counting = { ...clock, sleep: (...args) => { attempts++; return clock.sleep(...args) } }
try {
  const lock = await acquireLock(home, counting)
  console.log(JSON.stringify({ won: process.pid, attempts }))
  process.stdin.resume()
} catch (error) {
  console.log(error.message)
}
`

interface Contender {
  readonly child: ChildProcess
  readonly ready: Promise<unknown>
  /** The line that says what came of it. */
  readonly result: Promise<string>
}

function contend(home: string, barrier: string, within: readonly string[] = []): Contender {
  const [program = '', ...args] = [...within, process.execPath, contender, home, barrier]
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  children.add(child)
  child.once('exit', () => children.delete(child))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const ready = lines.next()
  const result = ready
    .then(() => lines.next())
    .then(({ value }) => value ?? Promise.reject(new Error('it ended and said nothing')))
  // Some tests kill before there is a result.
  result.catch(() => {})
  return { child, ready, result }
}

async function kill(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

test.before(async () => {
  await build({
    stdin: { contents: contenderSource, resolveDir: fileURLToPath(new URL('../..', import.meta.url)) },
    outfile: contender,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  })
})

test.after(async () => {
  await Promise.all([...children].map(kill))
  rmSync(scratch, { recursive: true, force: true })
})

/** Times that two start at once; the whole proof takes 50. */
const ROUNDS = Number(process.env.ROUNDS ?? 10)
/** The whole proof takes 100. */
const contenders = Number(process.env.CONTENDERS ?? 30)

test(`of ${contenders} processes one gets the lock, the others name it; after kill -9 the next start gets it at once`, async () => {
  const home = newHome()
  const barrier = join(scratch, 'barrier')
  const all = Array.from({ length: contenders }, () => contend(home, barrier))
  await Promise.all(all.map(({ ready }) => ready))
  // By then all have seen it, so all try at the same moment.
  writeFileSync(`${barrier}.new`, String(Date.now() + 200))
  renameSync(`${barrier}.new`, barrier)
  const results = await Promise.all(all.map(({ result }) => result))

  const winners = results.filter(line => line.startsWith('{'))
  assert.is(winners.length, 1)
  const { won } = JSON.parse(winners[0]!)
  const others = results.filter(line => !line.startsWith('{'))
  assert.equal(new Set(others), new Set([`daemon: already running with pid ${won}`]))
  assert.equal(readdirSync(home), ['daemon.lock'])

  assert.is(readLock(home)?.pid, won)
  await kill(all.find(({ child }) => child.pid === won)!.child)
  const next = contend(home, barrier)
  const after = JSON.parse(await next.result)
  assert.is(after.won, next.child.pid)
  assert.is(after.attempts, 1)
  assert.is(readLock(home)?.pid, next.child.pid)
  await kill(next.child)
})

test('contenders during a kill of the holder report a true pid or get the lock', async () => {
  const home = newHome()
  const barrier = join(scratch, 'barrier')
  let holder = contend(home, barrier)
  let holderPid = JSON.parse(await holder.result).won
  for (let round = 0; round < 5; round++) {
    const pair = [contend(home, barrier), contend(home, barrier)]
    await pair[round % 2]!.ready
    await kill(holder.child)
    const results = await Promise.all(pair.map(({ result }) => result))
    const winners = pair.filter((_, index) => results[index]!.startsWith('{'))
    assert.ok(winners.length <= 1)
    const truths = [holderPid, ...winners.map(({ child }) => child.pid)].map(
      pid => `daemon: already running with pid ${pid}`,
    )
    for (const line of results) assert.ok(line.startsWith('{') || truths.includes(line), line)
    holder = winners[0] ?? contend(home, barrier)
    holderPid = JSON.parse(await holder.result).won
  }
  await kill(holder.child)
})

test('a released lock is free, names no holder, and keeps its file', async () => {
  const home = newHome()
  const first = await acquireLock(home, clock)
  const file = join(home, 'daemon.lock')
  assert.is(statSync(file).mode & 0o777, 0o600)
  const record = readLock(home)
  assert.is(record?.pid, process.pid)
  assert.ok(record!.startTime.length > 0)
  const nonce = readFileSync(file, 'utf8').split('\n')[0]
  assert.match(nonce!, /^[0-9a-f]{32}$/)
  const { ino } = statSync(file)
  await Promise.all([first.release(), first.release()])
  assert.is(readLock(home), undefined)

  const second = await acquireLock(home, clock)
  assert.is(readFileSync(file, 'utf8').split('\n')[0], nonce)
  assert.is(statSync(file).ino, ino)
  await second.release()
})

test('another path to the file is the same lock within one process', async () => {
  const home = newHome()
  const alias = `${home}-alias`
  symlinkSync(home, alias)
  const lock = await acquireLock(home, clock)
  for (const path of [home, alias, join(home, '..', `home-${homes}`)]) {
    const error = await acquireLock(path, clock).catch(thrown => thrown)
    assert.instance(error, Fault)
    assert.is(error.code, 'daemon_already_running')
    assert.is(error.message, `daemon: already running with pid ${process.pid}`)
  }
  await lock.release()
})

test('a waiting process gets the lock when it is released', async () => {
  const home = newHome()
  const lock = await acquireLock(home, clock)
  let freed = false
  const next = acquireLock(home, clock, { waitMs: 20_000 }).then(won => ({ won, freed }))
  await clock.sleep(100)
  freed = true
  await lock.release()
  const result = await next
  assert.ok(result.freed)
  await result.won.release()
})

test('the start time of the holder is the recorded one, or unknown', async () => {
  const home = newHome()
  for (const [given, refusal] of [
    ['boot-1:42', 'boot-1:42'],
    [undefined, 'unknown'],
  ]) {
    const lock = await acquireLock(home, clock, { startTime: given })
    assert.is(readLock(home)?.startTime, refusal)
    await lock.release()
  }
})

test('the contents of the file do not decide', async () => {
  const home = newHome()
  const lock = await acquireLock(home, clock)
  const saved = readFileSync(join(home, 'daemon.lock'))
  await lock.release()
  // The file names a process that lives: this one. Yet nobody holds the lock.
  writeFileSync(join(home, 'daemon.lock'), saved)
  const again = await acquireLock(home, clock)
  assert.is(readLock(home)?.pid, process.pid)
  await again.release()
})

test('a holder without a recorded name yet is awaited, and the previous one is not named', async () => {
  const home = newHome()
  const file = join(home, 'daemon.lock')
  const lock = await acquireLock(home, clock)
  const own = readFileSync(file, 'utf8')
  writeFileSync(file, own.replace(`pid ${process.pid} `, `pid ${2 ** 22 + 1} `))
  const losing = acquireLock(home, clock).catch(thrown => thrown)
  await clock.sleep(100)
  writeFileSync(file, own)
  assert.is((await losing).message, `daemon: already running with pid ${process.pid}`)
  await lock.release()
})

test('a copied home has a lock of its own', async () => {
  const home = newHome()
  const copy = newHome()
  const lock = await acquireLock(home, clock)
  copyFileSync(join(home, 'daemon.lock'), join(copy, 'daemon.lock'))
  const other = await acquireLock(copy, clock)
  assert.is.not(other, lock)
  await other.release()
  await lock.release()
})

/** As another container has: no process, socket or pid of this one can be seen. */
const CONTAINER = ['unshare', '--net', '--pid', '--fork', '--mount-proc']
const canUnshare = spawnSync(CONTAINER[0] as string, [...CONTAINER.slice(1), 'true']).status === 0

test('a daemon in another network and pid namespace is refused and sees the holder', async () => {
  if (!canUnshare) return console.log('skipped: this system does not let the test make namespaces')
  const home = newHome()
  const go = join(scratch, 'go')
  writeFileSync(go, '0')
  const lock = await acquireLock(home, clock)
  const pid = `pid ${process.pid} on ${hostname()}, in another container or pid namespace`
  assert.is(await contend(home, go, CONTAINER).result, `daemon: already running with ${pid}`)
  await lock.release()

  const inside = contend(home, go, CONTAINER)
  const { won } = JSON.parse(await inside.result)
  const holder = lockHolder(home)
  // From outside its process has another pid.
  assert.ok(holder?.visible)
  assert.is.not(holder.pid, won)
  const refused = await acquireLock(home, clock).catch(error => error)
  assert.is(refused.message, `daemon: already running with pid ${holder.pid}`)
  process.kill(holder.pid as number, 'SIGKILL')
  await once(inside.child, 'exit')
  await (await acquireLock(home, clock)).release()
})

test('a copied home is not locked by the daemon of the original', async () => {
  const home = newHome()
  const lock = await acquireLock(home, clock)
  const copy = newHome()
  copyFileSync(join(home, 'daemon.lock'), join(copy, 'daemon.lock'))
  assert.is(lockHolder(home)?.pid, process.pid)
  assert.is(lockHolder(copy), undefined)
  await lock.release()
  assert.is(lockHolder(home), undefined)
})

test('a removed or replaced lock file frees nothing and is rewritten by the owner', async () => {
  const home = newHome()
  const file = join(home, 'daemon.lock')
  const lock = await acquireLock(home, clock)
  const changes = [() => rmSync(file), () => writeFileSync(file, `${'0'.repeat(32)}\n`)]
  for (const change of changes) {
    change()
    assert.is(lockHolder(home)?.pid, process.pid)
    const refused = await acquireLock(home, clock).catch(error => error)
    assert.is(refused.message, `daemon: already running with pid ${process.pid}`)
    lock.check()
    assert.is(readLock(home)?.pid, process.pid)
  }
  await lock.release()
})

test('an owner that finds another daemon in the lock file has lost the lock', async () => {
  const home = newHome()
  const file = join(home, 'daemon.lock')
  const lock = await acquireLock(home, clock)
  const own = readFileSync(file, 'utf8')
  const other = own.replace(/pid \d+ /, 'pid 17 ').replace(/owner [0-9a-f]+/, `owner ${'f'.repeat(16)}`)
  writeFileSync(file, other)
  assert.not(lock.isOwner())
  assert.throws(() => lock.check(), /another daemon \(pid 17 on /)
  await lock.release()
  assert.is(readFileSync(file, 'utf8'), other)
})

test('a stopped owner keeps its lock, and its children do not inherit it', async () => {
  const home = newHome()
  const go = join(scratch, 'go-on')
  writeFileSync(go, '0')
  const owner = contend(home, go)
  await owner.result
  owner.child.kill('SIGSTOP')
  const refused = await acquireLock(home, clock).catch(error => error)
  assert.is(refused.message, `daemon: already running with pid ${owner.child.pid}`)
  await kill(owner.child)

  const lock = await acquireLock(home, clock)
  const child = spawn('sleep', ['60'], { stdio: 'ignore' })
  await once(child, 'spawn')
  await lock.release()
  await (await acquireLock(home, clock)).release()
  await kill(child)
})

test('one of two simultaneous starts gets the lock, each time', async () => {
  const home = newHome()
  for (let round = 0; round < ROUNDS; round++) {
    const barrier = join(scratch, `round-${round}`)
    const pair = [contend(home, barrier), contend(home, barrier)]
    await Promise.all(pair.map(({ ready }) => ready))
    writeFileSync(`${barrier}.new`, String(Date.now() + 100))
    renameSync(`${barrier}.new`, barrier)
    const results = await Promise.all(pair.map(({ result }) => result))
    const [won] = results.filter(line => line.startsWith('{')).map(line => JSON.parse(line).won)
    const lost = results.filter(line => !line.startsWith('{'))
    assert.equal(lost, [`daemon: already running with pid ${won}`])
    await Promise.all(pair.map(({ child }) => (child.exitCode === null ? kill(child) : undefined)))
  }
})

test('the recorded holder is the owning process and not the child that took the lock for it', async () => {
  if (process.platform !== 'linux') return
  const home = newHome()
  const handle = openSync(home, 'r')
  // The child stays, as flock(1) does for the moment between the lock and its end.
  const program = 'import fcntl, sys; fcntl.flock(3, fcntl.LOCK_EX); print("locked", flush=True); sys.stdin.read()'
  const child = spawn('python3', ['-c', program], { stdio: ['pipe', 'pipe', 'inherit', handle] })
  children.add(child)
  child.once('exit', () => children.delete(child))
  assert.is((await createInterface(child.stdout!)[Symbol.asyncIterator]().next()).value, 'locked')
  assert.equal(lockHolder(home), { pid: process.pid, visible: true })
  closeSync(handle)
  assert.equal(lockHolder(home), { pid: child.pid, visible: true })
  await kill(child)
})

test('a foreign file is refused and not changed; a missing home is refused', async () => {
  for (const text of ['', '1234\n', `${'g'.repeat(32)}\n`, 'a'.repeat(500)]) {
    const home = newHome()
    writeFileSync(join(home, 'daemon.lock'), text)
    const error = await acquireLock(home, clock).catch(thrown => thrown)
    assert.instance(error, Fault)
    assert.is(error.code, 'lock_file_damaged')
    assert.is(readFileSync(join(home, 'daemon.lock'), 'utf8'), text)
  }
  const linked = newHome()
  writeFileSync(join(scratch, 'elsewhere'), `${'a'.repeat(32)}\n`)
  symlinkSync(join(scratch, 'elsewhere'), join(linked, 'daemon.lock'))
  for (const home of [linked, join(scratch, 'nowhere')]) {
    const error = await acquireLock(home, clock).catch(thrown => thrown)
    assert.instance(error, Fault)
    assert.is(error.code, 'lock_failed')
  }
  assert.is(readFileSync(join(scratch, 'elsewhere'), 'utf8'), `${'a'.repeat(32)}\n`)
})

test('the socket has a name of full length in every version of Node', async () => {
  if (process.platform !== 'linux') return
  const home = newHome()
  const lock = await acquireLock(home, clock)
  const name = `@svc.${statSync(home).dev}.${statSync(home).ino}.`
  const lines = readFileSync('/proc/net/unix', 'utf8').split('\n')
  const found = lines.filter(line => line.includes(name)).map(line => line.slice(line.indexOf(name)).length)
  assert.equal(found, [108])
  await lock.release()
})

test.run()
