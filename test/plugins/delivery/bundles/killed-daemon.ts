// A daemon that kills itself: node --import tsx killed-daemon.ts HOME KIT VERB POINT. It does VERB, which writes records, and
// ends at the POINT: `before <n>` in the transaction before the n-th of them, `after` once the transaction has ended and may
// or may not be on the disk, `told` when the caller has its answer.
import { definePlugin } from '../../../../kernel/plugin.js'
import { REQUEST, scene } from './bundles-scene.js'

const [home = '', kit = '', verb = '', point = '', at = '0'] = process.argv.slice(2)
const end = () => process.kill(process.pid, 'SIGKILL')
let armed = false
let writes = 0

const killer = definePlugin({
  name: 'acme.killer',
  version: '1.0.0',
  service: async () => class {},
}).surface({
  hooks: {
    write: {
      '*': () => {
        if (!armed) return undefined
        writes++
        if (point === 'before' && writes === Number(at)) end()
        if (point === 'after' && writes === 1) setImmediate(end)
        return undefined
      },
    },
  },
})

const s = await scene({ home, plugins: [killer] })
await s.extensions.load(kit)
const url = '/api/bundles/activations'
const [active] = (await s.request('GET', url)).body.activations
armed = true
if (verb === 'activate') await s.request('POST', url, REQUEST)
if (verb === 'update') await s.request('PATCH', `${url}/${active.id}`, { expected_version: active.version })
if (verb === 'deactivate') await s.request('DELETE', `${url}/${active.id}`)
end()
