import { once } from 'node:events'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ProcessHandle } from '../../../../plugins/platform/processes/api.js'
import { SpawnError } from '../../../../plugins/platform/processes/error.js'
import type { OwnedRequest } from '../../../../plugins/platform/processes/spawner.js'
import type { ProcessRow, ProcessTable } from '../../../../plugins/platform/processes/tables.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import {
  cleanUp,
  deaf,
  env,
  homeId,
  isRunning,
  memoryTable,
  pidsFrom,
  quick,
  request,
  scratch,
  shell,
  spawner,
} from './harness.js'

test.after(cleanUp)

test('each of many concurrent starts gets its own turn of the event loop, with other work in between', async () => {
  let turns = 0
  let counting = true
  const count = () => {
    turns++
    if (counting) setImmediate(count)
  }
  count()
  const startedIn: number[] = []
  const table = memoryTable()
  const add: ProcessTable['add'] = row => {
    startedIn.push(turns)
    return table.add(row)
  }
  const one = spawner({ ...table, add })
  await Promise.all(Array.from({ length: 20 }, () => one.spawn(request('cat'))))
  counting = false
  assert.is(startedIn.length, 20)
  assert.is(new Set(startedIn).size, 20, `turns: ${startedIn}`)
  await one.stopAll(quick)
})

test('a process gets its pipes, its folder and exactly its environment', async () => {
  const table = memoryTable()
  const one = spawner(table, undefined, `${homeId}-env`)
  const handle = await one.spawn({ ...shell('cat; pwd; env | sort >&2; exit 7'), env: { ...env, A: 'b' } })
  assert.equal(table.list(), [
    { pid: handle.pid, startTime: handle.startTime, group: handle.pid, owner: 'tests', label: '/bin/sh' },
  ])
  assert.equal(one.list(), [handle])
  assert.is(handle.alive, true)
  handle.stdin.end('hello\n')
  const [out, err, exit] = await Promise.all([text(handle.stdout), text(handle.stderr), handle.exited])
  assert.is(out, `hello\n${scratch}\n`)
  const names = err.split('\n').filter(line => line !== '' && !/^(PWD|OLDPWD|SHLVL|_)=/.test(line))
  assert.equal(names, [
    'A=b',
    `PATH=${env.PATH}`,
    `SVC_HOME_ID=${homeId}-env`,
    `SVC_PROCESS_ID=${homeId}-env.1`,
    `SVC_TEST_MARK=${env.SVC_TEST_MARK}`,
  ])
  assert.equal(exit, { code: 7, signal: null })
  assert.is(handle.alive, false)
  await handle.stop()
  assert.equal(table.list(), [])
  assert.equal(one.list(), [])
})

test('a descendant outside the group with a dropped environment ends too, a foreign process does not', async () => {
  const one = spawner()
  const apart = (ignore: string) => `env -i setsid sh -c '${ignore} echo $$; while :; do sleep 1; done' & `
  const [mine, other] = [
    await one.spawn(shell(`${apart('')}${apart('trap "" TERM;')}cat`)),
    await one.spawn(shell(`${apart('')}cat`)),
  ]
  const [strays, others] = [await pidsFrom(mine.stdout, 2), await pidsFrom(other.stdout, 1)]
  await mine.stop(quick)
  assert.equal(strays.map(isRunning), [false, false])
  assert.equal(others.map(isRunning), [true])
  await other.stop(quick)
  assert.equal(others.map(isRunning), [false])
})

test('nothing starts before its row is durable', async () => {
  const ran = join(scratch, 'ran')
  let settle = () => {}
  const durable = new Promise<void>(resolve => {
    settle = resolve
  })
  const spawning = spawner(memoryTable(), () => durable).spawn(request('touch', ran))
  await sleep(150)
  assert.not(existsSync(ran))
  settle()
  await (await spawning).exited
  assert.ok(existsSync(ran))
})

test('a group of three that ignores the end of stdin and SIGTERM is gone after stop', async () => {
  const table = memoryTable()
  const one = spawner(table)
  const handle = await one.spawn(shell(deaf))
  const pids = [handle.pid, ...(await pidsFrom(handle.stdout, 2))]
  assert.equal(pids.map(isRunning), [true, true, true])
  await Promise.all([handle.stop(quick), handle.stop(quick)])
  assert.equal(pids.map(isRunning), [false, false, false])
  assert.equal(await handle.exited, { code: null, signal: 'SIGKILL' })
  assert.equal(table.list(), [])
  assert.equal(one.list(), [])
})

test('stop escalates from the end of stdin to SIGTERM as needed', async () => {
  const one = spawner()
  const reader = await one.spawn(shell('cat >/dev/null; exit 3'))
  await reader.stop({ graceMs: 20_000 })
  assert.equal(await reader.exited, { code: 3, signal: null })
  const obeys = await one.spawn(shell(`trap 'exit 4' TERM; echo up; while :; do sleep 0.02; done`))
  await pidsFrom(obeys.stdout)
  await obeys.stop({ graceMs: 20, termMs: 20_000 })
  assert.equal(await obeys.exited, { code: 4, signal: null })
})

test('stop and kill end the group of an exited leader', async () => {
  const ends: ((handle: ProcessHandle) => unknown)[] = [handle => handle.stop(quick), handle => handle.kill()]
  for (const end of ends) {
    const table = memoryTable()
    const one = spawner(table)
    const handle = await one.spawn(shell(`trap '' TERM; sleep 1000 & echo $!`))
    const [left] = await pidsFrom(handle.stdout, 1)
    await handle.exited
    assert.is(handle.alive, false)
    assert.ok(isRunning(left!))
    assert.equal(one.list(), [handle])
    assert.is(table.list().length, 1)
    await end(handle)
    await handle.stop(quick)
    assert.not(isRunning(left!))
    assert.equal(one.list(), [])
    assert.equal(table.list(), [])
  }
})

test('a stopped process releases its output, whoever else holds it', async () => {
  // Without its mark and its environment it is nobody's.
  const apart = `setsid env -i /bin/sh -c 'ulimit -S -m unlimited; echo $$; exec sleep 1000' &`
  const handle = await spawner().spawn(shell(`${apart} sleep 0.2`))
  const [escaped] = await pidsFrom(handle.stdout, 1)
  await handle.stop(quick)
  if (!handle.stdout.destroyed) await once(handle.stdout, 'close')
  assert.ok(isRunning(escaped!))
})

test('a stop with virtual time ends with the processes', async () => {
  const one = spawner(memoryTable(), undefined, undefined, new VirtualClock())
  const handle = await one.spawn(shell('(cat; sleep 0.1) & cat; wait'))
  await handle.stop()
  assert.equal(one.list(), [])
})

test('writing to an ended process is no error', async () => {
  const handle = await spawner().spawn(request('true'))
  await handle.exited
  handle.stdin.write('x'.repeat(100_000))
  await sleep(50)
  assert.is(handle.alive, false)
})

test('a program that cannot start gives the reason and leaves nothing', async () => {
  const table = memoryTable()
  const one = spawner(table)
  const plain = join(scratch, 'plain')
  writeFileSync(plain, 'no program')
  const script = join(scratch, 'script')
  writeFileSync(script, '#!/no/such/interpreter\n')
  chmodSync(script, 0o755)
  const cases: [OwnedRequest, string, RegExp][] = [
    [request('no-such-command-anywhere', 'secret'), 'command_not_found', /no-such-command-anywhere.*PATH/],
    [{ ...request('cat'), env: { PATH: scratch } }, 'command_not_found', /cat/],
    [request(script), 'command_not_found', /interpreter/],
    [request(plain), 'spawn_failed', /EACCES/],
    [request(), 'spawn_failed', /cannot start/],
    [request('echo', 'a\0b'), 'spawn_failed', /null bytes/],
    [request('echo', 'x'.repeat(3_000_000)), 'spawn_failed', /E2BIG/],
    [{ ...request('cat'), cwd: join(scratch, 'nowhere') }, 'spawn_failed', /nowhere does not exist/],
    [{ ...request('cat'), cwd: plain }, 'spawn_failed', /plain does not exist/],
  ]
  for (const [expected, code, message] of cases) {
    const error = await one.spawn(expected).catch(thrown => thrown)
    assert.instance(error, SpawnError)
    assert.is(error.code, code)
    assert.match(error.message, message)
    assert.not.match(error.message, 'secret')
    assert.ok(error.hint.length > 0)
  }
  assert.equal(one.list(), [])
  assert.equal(table.list(), [])
})

test('a process with a failed row write does not stay', async () => {
  let row: ProcessRow | undefined
  const table: ProcessTable = {
    ...memoryTable(),
    add: async added => {
      row = added
      throw new Error('the disk is full')
    },
  }
  const one = spawner(table)
  const error = await one.spawn(shell(deaf)).catch(thrown => thrown)
  assert.is(error.code, 'spawn_failed')
  assert.match(error.message, 'the disk is full')
  assert.not(isRunning(row!.pid))
  assert.equal(one.list(), [])
})

test('stopAll ends every process, and none starts after it', async () => {
  const table = memoryTable()
  const one = spawner(table)
  const handles = await Promise.all([shell('cat'), shell('sleep 1000 | cat'), shell('exit 0')].map(one.spawn))
  await one.stopAll(quick)
  assert.equal(
    handles.map(({ alive }) => alive),
    [false, false, false],
  )
  assert.equal(table.list(), [])
  const error = await one.spawn(request('true')).catch(thrown => thrown)
  assert.is(error.code, 'spawn_failed')
})

test.run()
