import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ProcessWatch } from '../../../../plugins/work/acp/api.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { eventually } from '../../../fixtures/session-world.js'

test('one timer checks all processes, and no process means no timer', async () => {
  const clock = new VirtualClock()
  const watch = new ProcessWatch(clock, () => 120_000)
  const child = spawn('sh', ['-c', 'sleep 1000 & echo $!; wait'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [output] = await once(child.stdout, 'data')
  const member = Number(output)
  const group = child.pid ?? 0
  const looks: boolean[] = []
  const stood = { group, looked: (runs: boolean) => void looks.push(runs) }
  const others = [1, 2, 3].map(() => ({ group: process.pid, looked: () => {} }))
  try {
    assert.is(clock.pending, 0)
    for (const one of [stood, ...others]) watch.add(one)
    assert.is(clock.pending, 1)
    await clock.advance(120_000)
    assert.equal(looks, [true, true, true])

    // Any of the group: who started it may run on.
    process.kill(member, 'SIGSTOP')
    await eventually(async () => stateOf(member) === 'T', 'the stop')
    await clock.advance(40_000)
    assert.equal(looks.slice(3), [false])
    for (let i = 0; i < 20; i++) watch.look()
    assert.is(looks.length, 4, 'whoever asks again at once is told what was just seen')
    await clock.advance(1000)
    watch.look()
    assert.equal(looks.slice(3), [false, false])
    process.kill(member, 'SIGCONT')
    await eventually(async () => stateOf(member) !== 'T', 'the end of the stop')
    await clock.advance(40_000)
    assert.equal(looks.slice(5), [true])

    for (const one of others) watch.delete(one)
    assert.is(clock.pending, 1)
    watch.delete(stood)
    assert.is(clock.pending, 0)
    watch.look()
    assert.is(looks.length, 6)
  } finally {
    process.kill(-group, 'SIGKILL')
  }
})

const stateOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '')[0]

test.run()
