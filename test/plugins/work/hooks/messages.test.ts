import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../../fixtures/session-world.js'
import { openScene, warmPython } from './scene.js'

/** Writes a line of what it is told into a file. */
const TELLS = (file: string) => `#!/usr/bin/env python3
import json, sys, time
p = json.load(sys.stdin)
with open(${JSON.stringify(file)}, 'a') as f: f.write(json.dumps([p['event'], p.get('message_delta_type'), p['content'].get('text')]) + '\\n')
`

test('a message emits one start, its deltas, and an end with the whole text', async () => {
  const scene = await openScene()
  await scene.agent('talks')
  const file = path.join(scene.home, 'told')
  const command = await scene.program('tells.py', TELLS(file))
  const hook = { command, timeout: '60s', mode: 'async' }
  await scene.configure({
    start: { event: 'message.start', ...hook },
    delta: { event: 'message.delta', ...hook },
    end: { event: 'message.end', ...hook },
  })
  const { at } = await scene.session('talks')
  // What is gathered in 50 ms is a piece; the plan ends the message.
  const plan = `update ${JSON.stringify({ sessionUpdate: 'plan', entries: [] })}`
  await scene.prompt(at, ['say one', 'sleep 400', 'say two', plan, 'say three'].join('\n'))
  type Told = readonly [event: string, kind: string | null, text: string]
  const told = async (): Promise<Told[]> =>
    (await readFile(file, 'utf8').catch(() => ''))
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line))
  const of = (all: readonly Told[], event: string) => all.filter(([name]) => name === event)
  await eventually(async () => of(await told(), 'message.end').length === 2, 'the end of two messages')
  const text = (all: readonly Told[]) => all.map(([, , words]) => words).join('')
  const whole = of(await told(), 'message.end').map(([, , words]) => words)
  assert.ok(
    whole.some(words => /^one\s*two\s*$/.test(words)) && whole.some(words => /^three\s*$/.test(words)),
    whole.join('|'),
  )
  await eventually(async () => text(of(await told(), 'message.delta')).length === whole.join('').length, 'all pieces')
  const all = await told()
  assert.is(of(all, 'message.start').length, 2)
  // Each piece after the one before, and nothing of it twice.
  assert.match(text(of(all, 'message.delta')), /^one\s*two\s*three\s*$/)
  assert.ok(of(all, 'message.delta').every(([, kind]) => kind === 'text'))
  await scene.close()
})

test('a hook slower than its agent misses no delta and does not block the agent', async () => {
  const scene = await openScene()
  await scene.agent('talks')
  const file = path.join(scene.home, 'slow')
  const body = `time.sleep(0.02)\nwith open(${JSON.stringify(file)}, 'a') as f: f.write(p['content']['text'] + '\\n')`
  const command = await scene.program('slow.py', warmPython(body))
  await scene.configure({ delta: { event: 'message.delta', mode: 'async', warm: true, timeout: '60s', command } })
  const { id, at } = await scene.session('talks')
  const thought = { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'hm' } }
  // More than the queue of async hooks takes.
  const count = 80
  const lines = Array.from({ length: count }, (_, n) => `say ${n}\nupdate ${JSON.stringify(thought)}`)
  await scene.prompt(at, lines.join('\n'))
  const told = async () => (await readFile(file, 'utf8').catch(() => '')).split('\n').filter(line => line.trim() !== '')
  await eventually(async () => (await told()).length >= count, 'every piece')
  assert.equal(
    (await told()).map(Number),
    Array.from({ length: count }, (_, n) => n),
  )
  assert.equal(
    (await scene.runs(id, '&last=1000')).map(run => run.outcome),
    Array(count).fill('applied'),
  )
  await scene.close()
})

test.run()
