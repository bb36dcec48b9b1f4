// A daemon that a test kills: node --import tsx killed-daemon.ts HOME LEDGER EVENTS PRESETS. It emits events, which presets send to
// bridges that keep every message in the database and refuse some. It writes into the ledger that it is ready, each message that
// was posted a second time, and that everything is sent.
import { appendFileSync } from 'node:fs'
import { daemon, notifications, resources, workspaces } from '../../../../plugins/index.js'
import { boot } from '../../../harness/kernel.js'
import { emitter, fakeBridges } from './scene.js'

const [home = '', ledger = '', eventCount = '', presetCount = ''] = process.argv.slice(2)
const [events, presets] = [Number(eventCount), Number(presetCount)]
const BATCH = 50
const write = (text: string) => appendFileSync(ledger, `${text}\n`)

const bridges = fakeBridges('team')
bridges.refuses = () => Math.random() < 20 / (events * presets)
bridges.repeated = key => write(`known ${key}`)
const s = await boot({ home, plugins: [daemon, resources, workspaces, notifications, bridges.plugin, emitter] })
const { total } = (await s.request('GET', '/api/notifications/presets?built_in=false')).body
for (let n = total; n < presets; n++) {
  const targets = [{ bridge_id: 'team', canonical_route: `group:${n}` }]
  const body = { name: `p${n}`, events: ['task.run_*'], filter: 'severity >= error', targets, enabled: true }
  const { status } = await s.request('POST', '/api/notifications/presets', body)
  if (status !== 201) throw new Error(`POST ${status}`)
}
write('ready')
let next = (await s.request('GET', '/api/test/last')).body.n + 1
while (next <= events) {
  const batch = Array.from({ length: Math.min(BATCH, events - next + 1) }, (_, at) => at + next)
  const told = batch.flatMap(n => [
    { name: 'task.run_failed', payload: { task_id: `task_${n}`, n } },
    { name: 'task.run_completed', payload: { task_id: `task_${n}` } },
  ])
  await s.request('POST', '/api/test/emit', { events: told })
  next += batch.length
}
for (;;) {
  if (bridges.count() >= events * presets) break
  await new Promise(resolve => setTimeout(resolve, 50))
}
write('done')
await s.close()
