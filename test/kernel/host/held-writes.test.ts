import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  definePlugin,
  type Fault,
  KernelErrors,
  type Plugin,
  type PluginKernel,
  token,
} from '../../../kernel/plugin.js'
import { bootBare as boot } from '../../harness/kernel.js'
import { refusal } from './scene.js'

/** A plugin that writes records of no kind in particular, and what it is asked for at its start. */
function writer(name: string, start: (put: (id: string) => Promise<unknown>) => unknown = () => {}, provides?: string) {
  const made: { put: (id: string) => Promise<unknown> } = { put: async () => {} }
  const plugin = definePlugin({
    name,
    version: '1',
    ...(provides ? { provides: token<unknown>(provides) } : {}),
    service: async () =>
      class {
        constructor(readonly kernel: PluginKernel) {
          const { db, records, actor } = kernel
          made.put = id => db.tx(t => records.put(t, actor, { kind: 'acme.note', id, scope: GLOBAL, spec: {} }))
        }
        async start() {
          await start(made.put)
        }
      } as never,
  }).surface({})
  return { plugin, put: (id: string) => made.put(id) }
}

const GLOBAL = { kind: 'global' } as const

interface Telling {
  readonly version?: string
  readonly requires?: string
  readonly apply?: () => unknown
}

/** A plugin that has to hear of every record, and judges them. */
function teller(told: string[], { version = '1', requires, apply = () => {} }: Telling = {}): Plugin {
  return definePlugin({
    name: 'teller',
    version,
    requires: requires ? { other: token<unknown>(requires) } : {},
    service: async () =>
      class {
        async start() {
          await apply()
        }
      } as never,
  }).surface({
    hooks: {
      written: (_self: unknown, _t: unknown, { change: { after } }: { change: { after?: { id: string } } }) =>
        void told.push(`${after?.id} by ${version}`),
      write: {
        '*': (_self: unknown, _t: unknown, { after }: { after?: { id: string } }): Fault | undefined =>
          after?.id === 'bad' ? KernelErrors.forbidden('it is bad') : undefined,
      },
    },
  } as never)
}

function gate() {
  let open = () => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return { open, opened }
}

test('writes during a reload of a plugin that taps writes wait for it, and are judged and reported', async () => {
  const notices: string[] = []
  const { plugin, put } = writer('writer')
  const svc = await boot({ plugins: [plugin, teller(notices)] })
  const { open, opened } = gate()
  const started = gate()
  const apply = () => {
    started.open()
    return opened
  }
  const reloaded = svc.kernel.host.reload(teller(notices, { version: '2', apply }))
  await started.opened
  const settled: string[] = []
  const good = put('good').then(() => settled.push('good'))
  const bad = refusal(put('bad'))
  await new Promise(resolve => setTimeout(resolve, 50))
  assert.equal([settled, notices], [[], []], 'it waits')
  open()
  await reloaded
  await good
  assert.match(await bad, /forbidden/)
  assert.equal(notices, ['good by 2'])
  await svc.close()
})

test('if the new version does not start, the restored version gets the waiting writes', async () => {
  const notices: string[] = []
  const { plugin, put } = writer('writer')
  const svc = await boot({ plugins: [plugin, teller(notices)] })
  let written: Promise<unknown> | undefined
  const apply = () => {
    written = put('meanwhile')
    throw new Error('boom')
  }
  assert.match(await refusal(svc.kernel.host.reload(teller(notices, { version: '2', apply }))), /reload_failed/)
  await written
  assert.equal(notices, ['meanwhile by 1'])
  await svc.close()
})

test('no write waits for a plugin that does not return, or for one that starts or is required in the same change', async () => {
  const notices: string[] = []
  const required = writer('required', () => {}, 'other@1')
  const apart = writer('apart')
  const svc = await boot({ plugins: [required.plugin, apart.plugin, teller(notices, { requires: 'other@1' })] })
  const apply = () => required.put('needed')
  await svc.kernel.host.reload(teller(notices, { version: '2', requires: 'other@1', apply }))
  assert.equal(notices, [], 'the exchange itself waited for this one')
  await apart.put('then')
  assert.equal(notices, ['then by 2'])
  await svc.kernel.host.unload('teller')
  await apart.put('afterwards')
  assert.equal(notices, ['then by 2'])
  await svc.close()
})

test.run()
