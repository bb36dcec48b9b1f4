// A kernel that kills itself while the rows of a box go: run-typescript killed-daemon.ts HOME POINT. `forget`: before what the first
// row stands for goes; `rows`: when some of the rows are gone.
import { boot } from '../../../harness/kernel.js'
import { Boxes, type BoxesApi, boxes, counted, type Labels, label, labels } from './boxes.js'
import { service } from './scene.js'

const [home = '', point = ''] = process.argv.slice(2)
const end = () => void process.kill(process.pid, 'SIGKILL')

const world: Labels = { forget: () => (point === 'forget' ? end() : undefined) }
const { plugin, current } = service<BoxesApi>(Boxes)
await boot({ plugins: [boxes, labels(world), plugin], home })
await current().put('a', 'b')
await label(world, 'a', 2500, ['k1', 'k2'])
await label(world, 'b', 3, ['k3'])
const look = () => {
  if (counted(world, 'a').labels <= 1500) end()
  setImmediate(look)
}
if (point === 'rows') look()
await current().end('a')
setTimeout(() => process.exit(7), 20_000)
