import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  definePlugin,
  type Maybe,
  maybe,
  type Plugin,
  type PluginKernel,
  perConsumer,
  type Scope,
  token,
} from '../../../kernel/plugin.js'
import { boot } from '../../harness/kernel.js'

interface Desk {
  readonly whose: string
  put(thing: string): void
}
const Desks = token<Desk>('desks@1')

/** Hands each consumer a desk of its own and tells when one is cleared. */
const desks = (told: string[], version = '1') =>
  definePlugin({
    name: 'desks',
    version,
    provides: perConsumer(Desks, (_: object, { name, scope, actor }) => {
      scope.defer('desk', () => {
        told.push(`${version} cleared ${name}`)
      })
      return { whose: `${actor.id} at ${version}`, put: thing => void scope.defer(thing, () => void told.push(thing)) }
    }),
    service: async () => class {},
  }).surface({})

function user(name: string, seen: PluginKernel<{ desk: typeof Desks }>[]): Plugin {
  return definePlugin({
    name,
    version: '1',
    requires: { desk: Desks },
    service: async () =>
      class {
        constructor(kernel: PluginKernel<{ desk: typeof Desks }>) {
          seen.push(kernel)
        }
      },
  }).surface({})
}

function passerBy(name: string, seen: { desk: Maybe<Desk>; scope: Scope }[]): Plugin {
  return {
    name,
    version: '1',
    requires: { desk: maybe(Desks) },
    surface: {},
    apply: kernel => void seen.push({ desk: kernel.needs.desk as Maybe<Desk>, scope: kernel.scope }),
  }
}

test('each consumer has its own view, released with it', async () => {
  const notices: string[] = []
  const seen: PluginKernel<{ desk: typeof Desks }>[] = []
  const svc = await boot({ plugins: [desks(notices), user('ann', seen), user('bob', seen)] })
  assert.equal(
    seen.map(({ needs }) => needs.desk.whose),
    ['ann at 1', 'bob at 1'],
  )
  seen[0]?.needs.desk.put('cup')
  await svc.kernel.host.unload('ann')
  assert.equal(notices, ['cup', '1 cleared ann'])
  await svc.close()
  assert.equal(notices.slice(2), ['1 cleared bob'])
})

test('a view of an optional service is released with the service, and the next service has another', async () => {
  const notices: string[] = []
  const seen: { desk: Maybe<Desk>; scope: Scope }[] = []
  const svc = await boot({ plugins: [passerBy('cat', seen), desks(notices)] })
  const [cat] = seen
  if (!cat) throw new Error('the cat was not started')
  const holds = () => svc.kernel.host.plugins().flatMap(one => (one.name === 'cat' ? one.holds : []))
  assert.is(cat.desk.current, cat.desk.current)
  assert.is(cat.desk.current?.whose, 'cat at 1')
  const held = holds().length
  for (let version = 2; version < 6; version++) {
    await svc.kernel.host.reload(desks(notices, `${version}`))
    assert.is(cat.desk.current?.whose, `cat at ${version}`)
    assert.is(holds().length, held, 'views of services that are gone are not held')
  }
  assert.equal(notices, ['1 cleared cat', '2 cleared cat', '3 cleared cat', '4 cleared cat'])
  await svc.kernel.host.unload('desks')
  assert.is(cat.desk.current, undefined)
  assert.is(notices.at(-1), '5 cleared cat')
  await svc.close()
})

test.run()
