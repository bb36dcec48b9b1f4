// proof, timeout: 120s: what leaves its group, session, environment and parents
import { spawn as spawnChild } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ProcessHandle } from '../../../../plugins/platform/processes/api.js'
import type { Spawner } from '../../../../plugins/platform/processes/spawner.js'
import { appear, endlessFlight, endTagged, escapes, tagged, taggedEver } from './escapes.js'
import { cleanUp, env, homeId, memoryTable, quick, request, shell, spawner } from './harness.js'

// By the mark alone: none of these has a cgroup.
const linux = process.platform === 'linux'
const tags: string[] = []

test.after(async () => {
  await cleanUp()
  for (const tag of tags) endTagged(tag)
})

function tag(): string {
  const made = randomUUID()
  tags.push(made)
  return made
}

/** A process with children that have left it in every way; by then the fleeing ones have settled. */
async function withEscapes(one: Spawner, of: string): Promise<ProcessHandle> {
  const ways = escapes(of)
  const handle = await one.spawn(shell(`${ways.join('\n')}\ncat`))
  // Its own command line has the tag as well.
  const found = await appear(of, ways.length + 1)
  assert.ok(found.length > ways.length, `of ${ways.length} escapes and their shell ${found.length} are there`)
  return handle
}

test('a stop kills processes left by env -i, setsid and forks, and no process of others', async () => {
  if (!linux) return
  const one = spawner()
  const [mine, others] = [tag(), tag()]
  const [handle, other] = [await withEscapes(one, mine), await withEscapes(one, others)]
  const before = tagged(others)
  await handle.stop(quick)
  assert.equal(tagged(mine), [])
  assert.equal(tagged(others), before)
  await other.stop(quick)
  assert.equal(tagged(others), [])
})

test('a stop catches a fork bomb faster than a process scan', async () => {
  if (!linux) return
  for (let round = 0; round < 3; round++) {
    const mine = tag()
    const handle = await spawner().spawn(shell(`${endlessFlight(mine).join('\n')}\ncat`))
    assert.ok(taggedEver(mine).length > 0, 'it flees')
    await handle.stop(quick)
    assert.equal(taggedEver(mine), [])
  }
})

test('stopAll kills the leftovers of all processes', async () => {
  if (!linux) return
  const one = spawner()
  const all = [tag(), tag()]
  for (const mine of all) await withEscapes(one, mine)
  await one.stopAll(quick)
  assert.equal(all.flatMap(tagged), [])
})

test('the next daemon of a home kills leftovers of the previous one, and none of another home', async () => {
  if (!linux) return
  const [mine, others] = [tag(), tag()]
  const id = `${homeId}-last`
  const last = spawner(memoryTable(), undefined, id)
  const beside = spawner(memoryTable(), undefined, `${homeId}-beside`)
  await withEscapes(last, mine)
  await withEscapes(beside, others)
  // A spawner that has started nothing itself is what the next daemon has; it has no rows either.
  const next = spawner(memoryTable(), undefined, id)
  const before = tagged(others)
  const { resisting } = await next.reap()
  assert.equal(resisting, [])
  assert.equal(tagged(mine), [])
  assert.equal(tagged(others), before)
})

test('the descent of a process is known whatever environment it dropped', async () => {
  if (!linux) return
  const one = spawner()
  const [mine, others] = [tag(), tag()]
  const [handle, other] = [await withEscapes(one, mine), await withEscapes(one, others)]
  for (const pid of tagged(mine)) assert.is(one.originOf(pid), handle)
  for (const pid of tagged(others)) assert.is(one.originOf(pid), other)
  assert.is(spawner().originOf(handle.pid), undefined)
  assert.is(one.originOf(process.pid), undefined)
  assert.is(one.originOf(2 ** 30), undefined)
})

test('a process scanned before a start is not attributed to it, and escaped ones are', async () => {
  if (!linux) return
  const one = spawner()
  for (const look of [1, 2]) assert.is(one.originOf(process.pid), undefined, `look ${look}`)
  const mine = tag()
  const handle = await withEscapes(one, mine)
  for (const pid of tagged(mine)) assert.is(one.originOf(pid), handle)
  assert.is(one.originOf(process.pid), undefined)
})

test('a daemon of another home inside a process marks its own processes, and ends with that process', async () => {
  if (!linux) return
  const mine = tag()
  // In place of a daemon: what it starts has a mark of its own, lower or higher than the inherited one.
  const nested = ['4503599627370497', '9007199254740990'].map(
    limit => `(ulimit -S -m ${limit}; exec setsid sh -c "sleep 1000; :" ${mine}) &`,
  )
  const daemon = `env -i setsid sh -c 'trap "" TERM; ${nested.join(' ')} wait' ${mine} >/dev/null 2>&1 </dev/null &`
  const handle = await spawner().spawn(shell(`${daemon} cat`))
  assert.is((await appear(mine, 4)).length, 4)
  await handle.stop(quick)
  assert.equal(tagged(mine), [])
})

test('the mark keeps arguments, name, environment and limits of a program', async () => {
  const PATH = `${process.execPath.replace(/\/[^/]*$/, '')}:${env.PATH}`
  const odd = { ...env, PATH, 'npm_config_//host/:x': 'a b', 'A.B': '1', EMPTY: '' }
  const script = 'process.stdout.write(JSON.stringify([process.argv.slice(1), process.argv0, process.env]))'
  const handle = await spawner().spawn({
    ...request('node', '-e', script, '--', '', "it's", '$HOME; true', '*', '-x'),
    env: odd,
  })
  let text = ''
  for await (const chunk of handle.stdout) text += chunk
  const [argv, argv0, got] = JSON.parse(text)
  assert.equal([argv, argv0], [['', "it's", '$HOME; true', '*', '-x'], 'node'])
  const { SVC_HOME_ID, SVC_PROCESS_ID, ...rest } = got
  assert.ok(SVC_HOME_ID && SVC_PROCESS_ID)
  assert.equal(rest, odd)
})

test('process scans are shared: a hundred stops cost a few times one stop', async () => {
  if (!linux) return
  // Bystanders make a look long.
  const crowd = Array.from({ length: 150 }, () => spawnChild('sleep', ['1000'], { stdio: 'ignore' }))
  const one = spawner()
  const start = (count: number) => Promise.all(Array.from({ length: count }, () => one.spawn(request('cat'))))
  /** Milliseconds of processor time of this process, which looks; others may have the processor meanwhile. */
  const time = async (handles: readonly ProcessHandle[]) => {
    const begun = process.cpuUsage()
    await Promise.all(handles.map(handle => handle.stop()))
    const { user, system } = process.cpuUsage(begun)
    return (user + system) / 1000
  }
  await time(await start(1))
  const single = await time(await start(1))
  const hundred = await time(await start(100))
  for (const child of crowd) child.kill('SIGKILL')
  assert.ok(hundred < 15 * single + 500, `one took ${single.toFixed()} ms, a hundred ${hundred.toFixed()} ms`)
})

test.run()
