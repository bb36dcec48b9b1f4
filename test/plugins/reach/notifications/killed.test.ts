// proof, timeout: 1800s: so that EVENTS=10000 PRESETS=50 KILLS=20 fits
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { daemon, notifications, resources, workspaces } from '../../../../plugins/index.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'
import { typescript } from '../../../harness/run-typescript.js'
import { fakeBridges } from './scene.js'

const KILLS = Number(process.env.KILLS ?? 6)
const EVENTS = Number(process.env.EVENTS ?? 600)
const PRESETS = Number(process.env.PRESETS ?? 10)
const program = fileURLToPath(new URL('killed-daemon.ts', import.meta.url))

test('kill -9 during dispatch: each event is one message per preset, and none is posted twice', async () => {
  const home = await temporaryFolder('killed-notifications')
  const folder = await temporaryFolder('killed-ledger')
  const ledger = path.join(folder, 'ledger')
  await writeFile(ledger, '')
  const lines = async () => (await readFile(ledger, 'utf8')).split('\n').filter(Boolean)
  const count = async (word: string) => (await lines()).filter(line => line.startsWith(word)).length
  const startedAt = Date.now()
  let kills = 0
  for (let start = 1; (await count('done')) === 0; start++) {
    const args = [...typescript, program, home, ledger, `${EVENTS}`, `${PRESETS}`]
    const child = spawn(process.execPath, args, { stdio: 'inherit' })
    const exited = once(child, 'exit')
    while ((await count('ready')) < start) {
      assert.is(child.exitCode, null, 'the daemon ended by itself')
      await sleep(10)
    }
    if (kills < KILLS) {
      await Promise.race([exited, sleep(Math.random() * 300)])
      if (child.exitCode === null) {
        child.kill('SIGKILL')
        kills++
      }
    }
    await exited
  }
  const seconds = (Date.now() - startedAt) / 1000
  assert.equal(await count('known'), 0, 'a message was posted again')

  const bridges = fakeBridges('team')
  const s = await boot({ home, plugins: [daemon, resources, workspaces, notifications, bridges.plugin] })
  const byRoom = new Map<string, Set<string>>()
  const posted = bridges.posted()
  for (const { target, text } of posted) {
    const room = byRoom.get(target.group_id ?? '') ?? new Set()
    byRoom.set(target.group_id ?? '', room)
    room.add(/task_\d+/.exec(text)?.[0] ?? text)
  }
  assert.is(posted.length, EVENTS * PRESETS)
  assert.is(byRoom.size, PRESETS)
  for (const [room, tasks] of byRoom) assert.is(tasks.size, EVENTS, `room ${room}`)
  await s.close()
  await Promise.all([home, folder].map(each => rm(each, { recursive: true, force: true })))
  console.log(
    `${kills} kills, ${EVENTS} events, ${PRESETS} presets, ${posted.length} messages in ${seconds.toFixed(1)} s`,
  )
})

test.run()
