import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  definePlugin,
  Fault,
  gate,
  type HooksOf,
  hookTable,
  maybe,
  type Plugin,
  type PluginKernel,
  surfaceOf,
  type TapsOf,
  token,
} from '../../../kernel/plugin.js'
import { bootBare as boot } from '../../harness/kernel.js'

const points = hookTable({
  opening: gate<[asked: string[]]>('opening', 'Before a door is opened.'),
})
type Doors = TapsOf<typeof points>
const Left = token<Doors>('left@1')
const Right = token<Doors>('right@1')
const tokens = { left: Left, right: Right }

/** What runs now, by the name that it has. */
type Running = Map<string, HooksOf<typeof points>>

interface Parts {
  readonly version?: string
  /** Tokens of plugins that must run before, so that its taps come later. */
  readonly requires?: Readonly<Record<string, ReturnType<typeof token>>>
  /** A tap that it has on the other one; default: it notes its name. */
  readonly answer?: (asked: string[]) => Fault | undefined | Promise<Fault | undefined>
  readonly hook?: (doors: Doors) => Doors['opening']
  readonly start?: () => unknown
  readonly replaces?: string
}

/** One of two plugins that tap each other's gate, and neither of which requires the other. */
function door(name: 'left' | 'right', running: Running, parts: Parts = {}): Plugin {
  const { version = '1', requires = {}, answer, hook = doors => doors.opening, start, replaces } = parts
  const other = name === 'left' ? 'right' : 'left'
  const { tap } = surfaceOf<unknown>()
  return definePlugin({
    name: replaces === undefined ? name : `acme.${name}`,
    version,
    requires,
    ...(replaces === undefined ? {} : { replaces }),
    provides: tokens[name],
    service: async () =>
      class {
        readonly opening
        constructor(kernel: PluginKernel) {
          const made = kernel.hooks.of(points)
          this.opening = made.opening
          running.set(name, made)
          kernel.scope.defer('running', () => running.delete(name))
        }
        async start() {
          await start?.()
        }
      } as never,
  }).surface({
    taps: [tap(maybe(tokens[other]), hook, () => answer ?? (asked => void asked.push(`${name} ${version}`)))],
  } as never)
}

async function ask(running: Running, name: string): Promise<string> {
  const requests: string[] = []
  const answer = await running.get(name)?.opening.ask(requests)
  return answer instanceof Fault ? `${requests} ${answer.code}` : `${requests}`
}

const stateOf = (svc: Awaited<ReturnType<typeof boot>>, name: string) =>
  svc.kernel.host.plugins().find(plugin => plugin.name === name)?.state

for (const [first, second] of [
  ['left', 'right'],
  ['right', 'left'],
] as const) {
  test(`${first} first: two plugins tap each other while both run, through loads, reloads and unloads`, async () => {
    const running: Running = new Map()
    const svc = await boot({ plugins: [door(first, running)] })
    const { host } = svc.kernel
    assert.is(await ask(running, first), '', 'alone')
    const holds = () => host.plugins().find(({ name }) => name === first)?.holds ?? []
    const alone = holds()
    await host.load(door(second, running))
    const both = async (versions: Record<string, string>) => {
      for (const [name, other] of [
        ['left', 'right'],
        ['right', 'left'],
      ] as const)
        assert.is(await ask(running, name), `${other} ${versions[other]}`)
    }
    await both({ left: '1', right: '1' })
    await host.reload(door(first, running, { version: '2' }))
    await both({ [first]: '2', [second]: '1' })
    await host.reload(door(second, running, { version: '2' }))
    await both({ left: '2', right: '2' })
    await host.unload(first)
    assert.is(await ask(running, second), '', 'the other one is gone')
    await host.load(door(first, running, { version: '3' }))
    await both({ [first]: '3', [second]: '2' })
    await host.unload(second)
    assert.is(await ask(running, first), '', 'the other one is gone')
    assert.equal(holds(), alone, 'nothing is kept of the one that went')
    await host.unload(first)
    await host.load(door(second, running, { version: '4' }))
    await host.load(door(first, running, { version: '4' }))
    await both({ left: '4', right: '4' })
    await svc.close()
  })

  test(`${first} first: each gate is asked while both plugins run`, async () => {
    const running: Running = new Map()
    const svc = await boot({ plugins: [door(first, running)] })
    const { host } = svc.kernel
    const unasked: string[] = []
    let asks = 0
    let over = false
    const isActive = (name: string) => stateOf(svc, name)?.status === 'active'
    // Asks between all turns: a gate that is asked when both run has to have a tap.
    const asking = (async () => {
      while (!over) {
        for (const name of ['left', 'right']) {
          const wasBoth = isActive('left') && isActive('right') && running.size === 2
          const answer = ask(running, name)
          asks++
          if (wasBoth && (await answer) === '') unasked.push(name)
        }
        await new Promise(setImmediate)
      }
    })()
    for (let round = 0; round < 20; round++) {
      await host.load(door(second, running))
      await host.reload(door(first, running, { version: `${round}` }))
      await host.reload(door(second, running, { version: `${round}` }))
      await host.unload(second)
      await host.load(door(second, running))
      await host.unload(first)
      await host.load(door(first, running))
      await host.unload(second)
    }
    over = true
    await asking
    assert.equal(unasked, [])
    assert.ok(asks > 100, `asked ${asks} times`)
    await svc.close()
  })
}

test('a dependent of the provider that starts in the same change finds the gate tapped', async () => {
  const running: Running = new Map()
  const found: string[] = []
  const asker = definePlugin({
    name: 'asker',
    version: '1',
    requires: { left: Left },
    service: async () =>
      class {
        async start() {
          found.push(await ask(running, 'left'))
        }
      } as never,
  }).surface({})
  const svc = await boot({ plugins: [asker, door('left', running), door('right', running)] })
  await svc.kernel.host.reload(door('left', running, { version: '2' }))
  assert.equal(found, ['right 1', 'right 1'])
  await svc.close()
})

test('the order of a tap follows the depth of its plugin, whichever started first', async () => {
  const { tap } = surfaceOf<unknown>()
  const asks = (name: string, requires: Parts['requires'] = {}, isOptional = true) =>
    definePlugin({ name, version: '1', requires: isOptional ? requires : { ...requires, left: Left } }).surface({
      taps: [
        tap(
          isOptional ? maybe(Left) : Left,
          doors => doors.opening,
          () => asked => void asked.push(name),
        ),
      ],
    })
  const base = (name: string, requires: Parts['requires'] = {}) =>
    definePlugin({ name, version: '1', requires, provides: token(`${name}@1`) }).surface({})
  const running: Running = new Map()
  const deep = { two: token('two@1') }
  const plugins = [
    base('one'),
    base('two', { one: token('one@1') }),
    asks('deep', deep),
    asks('a'),
    asks('hard', {}, false),
  ]
  const svc = await boot({ plugins: [...plugins, door('left', running)] })
  const order = 'a,hard,deep'
  assert.is(await ask(running, 'left'), order)
  const { host } = svc.kernel
  await host.reload(asks('a'))
  assert.is(await ask(running, 'left'), order)
  await host.unload('left')
  await host.load(door('left', running))
  assert.is(await ask(running, 'left'), order)
  await svc.close()
})

test('a call in progress is awaited on either side and ends normally', async () => {
  for (const leaving of ['left', 'right'] as const) {
    const running: Running = new Map()
    let finish = () => {}
    const held = new Promise<void>(resolve => {
      finish = resolve
    })
    const answer = async () => {
      await held
      return new Fault('no', 409, 'no')
    }
    const svc = await boot({ plugins: [door('left', running), door('right', running, { answer })] })
    const verdict = ask(running, 'left')
    let gone = false
    const unloaded = svc.kernel.host.unload(leaving).then(() => {
      gone = true
    })
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    assert.not.ok(gone, `${leaving} waits`)
    finish()
    assert.is(await verdict, ' no')
    await unloaded
    await svc.close()
  }
})

test('a plugin that taps a missing hook of an optional service fails, and the service continues', async () => {
  const running: Running = new Map()
  const wrong = door('right', running, { hook: doors => (doors as never as Record<string, Doors['opening']>).closing! })
  const lacks = 'right taps the hook closing, which the service of left@1 does not have'
  const svc = await boot({ plugins: [wrong] })
  assert.is(stateOf(svc, 'right')?.status, 'active')
  await svc.kernel.host.load(door('left', running))
  assert.is(stateOf(svc, 'left')?.status, 'active')
  assert.equal(stateOf(svc, 'right'), { status: 'failed', error: lacks })
  await svc.kernel.host.unload('right')
  await svc.kernel.host.load(wrong)
  assert.equal(stateOf(svc, 'right'), { status: 'failed', error: lacks })
  await svc.close()
})

test('a replacement without a hook that another plugin taps is rolled back', async () => {
  const running: Running = new Map()
  const lacking: Plugin = { ...door('left', running, { replaces: 'left' }), apply: () => ({}) }
  const svc = await boot({
    plugins: [door('left', running), door('right', running), lacking],
    replace: ['acme.left'],
  })
  const lacks = 'right taps the hook opening, which the service of left@1 does not have'
  assert.equal(stateOf(svc, 'acme.left'), { status: 'failed', error: lacks })
  assert.is(await ask(running, 'left'), 'right 1', 'at boot the original has its place back')
  const refused = await svc.kernel.host.load(lacking).catch(error => error as Fault)
  assert.is((refused as Fault).code, 'reload_failed')
  assert.match((refused as Fault).message, lacks)
  assert.is(await ask(running, 'left'), 'right 1', 'what ran before runs again')
  assert.is(stateOf(svc, 'right')?.status, 'active')
  await svc.close()
})

test('a tap finds its hook on the consumer view of a provider', async () => {
  const Views = token<{ readonly of: (name: string) => Doors['opening']; readonly who: string }>('views@1')
  const made: string[] = []
  const running: Running = new Map()
  const provider: Plugin = {
    name: 'views',
    version: '1',
    requires: {},
    provides: Views,
    view: (self, { name, scope }) => {
      made.push(name)
      scope.defer('view', () => void made.push(`end ${name}`))
      return { of: () => self.opening, who: name }
    },
    surface: {},
    apply: kernel => {
      const own = kernel.hooks.of(points)
      running.set('views', own)
      return own
    },
  }
  const { tap } = surfaceOf<{ readonly needs: { readonly views: { readonly current?: { who: string } } } }>()
  const holder = definePlugin({ name: 'holder', version: '1', requires: { views: maybe(Views) } }).surface({
    taps: [
      tap(
        maybe(Views),
        views => views.of('x'),
        self => asked => void asked.push(String(self.needs.views.current?.who)),
      ),
    ],
  } as never)
  const svc = await boot({ plugins: [holder, provider] })
  assert.is(await ask(running, 'views'), 'holder')
  assert.equal(made, ['holder'], 'one view for the need and the taps')
  await svc.kernel.host.unload('views')
  assert.equal(made, ['holder', 'end holder'])
  await svc.close()
})

test.run()
