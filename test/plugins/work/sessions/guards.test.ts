import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { AgentGuards } from '../../../../plugins/work/acp/api.js'
import { changeGuard } from '../../../../plugins/work/sessions/agent/binding.js'
import type { RunningAgent } from '../../../../plugins/work/sessions/agent/launch.js'

/** A process that can do all, and the modes that it was put into. */
function running({
  cannotAsk,
  guards = new AgentGuards(),
  fails = false,
}: {
  cannotAsk?: string
  guards?: AgentGuards
  fails?: boolean
} = {}) {
  const modes: string[] = []
  const agent = {
    checkAsks: () => {},
    changeMode: async (mode: string) => {
      modes.push(mode)
      if (fails) throw new Error('no such mode')
    },
  }
  const asksIn = (mode: string) => (guards.first ? 'approve-reads' : mode)
  const process = { agent, permissions: { mode: 'approve-all' }, guards, cannotAsk, asksIn } as unknown as RunningAgent
  return { process, guards, modes }
}
const soft = { by: 'a restraint', isRequired: false }
const hard = { by: 'a hook', isRequired: true }

test('an agent is kept asking while one owner has a guard, and each owner changes its own', async () => {
  const { process, guards, modes } = running()
  await changeGuard(process, 'network', soft)
  await changeGuard(process, 'hooks', hard)
  await changeGuard(process, 'network', undefined)
  assert.equal([modes, guards.first, guards.required], [['approve-reads'], hard, 'a hook'])
  await changeGuard(process, 'hooks', undefined)
  assert.equal([modes, guards.first], [['approve-reads', 'approve-all'], undefined])
})

test('the named guard is the first required one in the order of owner names', () => {
  const guards = new AgentGuards({ lint: 'the hook lint' })
  guards.set('alpha', soft)
  assert.equal([guards.first?.by, guards.required], ['the hook lint', 'the hook lint'])
  guards.set('hooks', hard)
  assert.is(guards.required, 'a hook')
  guards.set('hooks', undefined)
  guards.set('lint', undefined)
  assert.equal([guards.first?.by, guards.required], ['a restraint', undefined])
})

test('a process that cannot be kept asking is marked until no guard is left', async () => {
  for (const answer of [{ cannotAsk: 'it never asks' }, { fails: true }]) {
    const { process, guards } = running(answer)
    await changeGuard(process, 'network', soft)
    const why = answer.cannotAsk ?? 'no such mode'
    assert.is(guards.unheld, why)
    await changeGuard(process, 'hooks', hard)
    await changeGuard(process, 'network', undefined)
    assert.is(guards.unheld, why)
    await changeGuard(process, 'hooks', undefined)
    assert.is(guards.unheld, undefined)
  }
  const { process, guards } = running({ guards: new AgentGuards({ hooks: 'a hook' }) })
  await changeGuard(process, 'network', soft)
  assert.is(guards.unheld, undefined, 'it asks from its start on')
})

test.run()
