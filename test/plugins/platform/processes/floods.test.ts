import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../../../kernel/clock.js'
import { createSpawner } from '../../../../plugins/platform/processes/spawner.js'
import { cleanUp, memoryTable, quick, request, shell } from './harness.js'

test.after(cleanUp)

const KIB = 1024

/** A spawner whose processes may print little, and the faults that it reports. */
function bounded() {
  const faults: string[] = []
  const spawner = createSpawner({
    homeId: `flood-${process.pid}`,
    table: memoryTable(),
    clock: systemClock(),
    durable: async () => {},
    report: ({ owner, hook, error }) => faults.push(`${owner}: ${hook}: ${(error as Error).message}`),
    limits: {
      read: { burst: 128 * KIB, perSecond: 512 * KIB },
      tolerated: { burst: 512 * KIB, perSecond: 64 * KIB },
    },
  })
  return { spawner, faults }
}

for (const stream of ['stdout', 'stderr'] as const) {
  test(`a process that floods ${stream} is throttled, named once, and killed if it continues`, async () => {
    const { spawner, faults } = bounded()
    const endless = shell(`exec yes ${stream === 'stderr' ? '>&2' : ''}`)
    const child = await spawner.spawn({ ...endless, onBehalfOf: 'acme.loud', label: 'endless' })
    let bytes = 0
    const failed = new Promise<Error>(resolve => child[stream].once('error', resolve))
    child[stream].on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    assert.equal(await child.exited, { code: null, signal: 'SIGKILL' })
    assert.match((await failed).message, 'it floods')
    assert.ok(bytes <= 1024 * KIB, `${bytes} bytes were read`)
    assert.is(faults.length, 2, faults.join('\n'))
    assert.match(faults[0] ?? '', `acme.loud: ${stream}: it prints faster`)
    assert.match(faults[1] ?? '', `acme.loud: ${stream}: it floods`)
    await spawner.stopAll(quick)
  })
}

test('a process that prints a lot and stops is not killed and loses no output', async () => {
  const { spawner, faults } = bounded()
  const child = await spawner.spawn(request('head', '-c', String(400 * KIB), '/dev/zero'))
  let bytes = 0
  for await (const chunk of child.stdout) bytes += (chunk as Buffer).length
  assert.is(bytes, 400 * KIB)
  assert.equal((await child.exited).code, 0)
  assert.is(faults.length, 1, faults.join('\n'))
  await spawner.stopAll(quick)
})

test.run()
