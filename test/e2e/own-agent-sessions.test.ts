// proof, timeout: 480s
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type ModelRequest, type ScriptedModel, type Step, scriptedModel } from '../fixtures/scripted-model.js'
import { Installed, until } from './installed.js'

const MS = 60_000
const use = (name: string, input: unknown): Step => ({ calls: [{ name, input }] })

let model: ScriptedModel
let svc: Installed
let repository: string

test.before(async () => {
  model = await scriptedModel([{ id: 'tiny' }])
  svc = new Installed()
  repository = svc.makeRepository('repository')
  const { code, stderr } = await svc.run(['init', '--yes', '--endpoint', model.url])
  assert.is(code, 0, stderr)
  await svc.svc('daemon', 'start')
})
test.after(async () => {
  await svc.remove()
  await model.close()
})

/** What a request told the model, without the prompt of the agent itself. */
const transcript = (request = model.asked.at(-1)) => JSON.stringify(request?.messages.slice(1))
/** What a request said last. */
const last = ({ messages }: ModelRequest) => messages.at(-1)!
const says = (request: ModelRequest, text: string) => String(last(request).content).includes(text)

async function newSession(sandbox: string, permissions = 'approve-all'): Promise<string> {
  const options = ['--sandbox', sandbox, '--permissions', permissions, '--json']
  const { code, stdout, stderr } = await svc.run(['session', 'new', ...options], repository)
  assert.is(code, 0, stderr)
  const { session } = JSON.parse(stdout) as { session: { id: string; permissions: string } }
  assert.is(session.permissions, permissions)
  return session.id
}
const prompt = (id: string, text: string) => svc.svc('session', 'prompt', id, text)

for (const sandbox of ['none', 'default']) {
  const where = sandbox === 'none' ? 'outside of a sandbox' : 'in a sandbox'
  const file = (name: string) => join(repository, `${name}-${sandbox}`)

  test(`${where} guidance is delivered with the result of the running tool`, async () => {
    const id = await newSession(sandbox)
    const command = `until [ -e ${file('go')} ]; do sleep 0.1; done; echo tooled`
    model.script(request => {
      if (says(request, 'go slowly')) return use('run', { command })
      // A model takes a while: guidance that came meanwhile is in time.
      return last(request).role === 'tool' ? { text: 'I go on.', sleepMs: 10_000 } : { text: 'I take the left door.' }
    })
    const requestCount = model.asked.length
    const turn = svc.start(['session', 'prompt', id, 'go slowly'])
    await until(
      () => model.asked.length > requestCount || undefined,
      MS,
      () => `a request\n${turn.text()}`,
    )
    await svc.svc('session', 'steer', id, 'use the left door')
    writeFileSync(file('go'), '')
    const steered = await until(
      () => model.asked.slice(requestCount).find(asked => says(asked, 'left door')),
      MS,
      turn.text,
    )
    await turn.ended
    const roles = steered.messages.slice(1).map(({ role }) => role)
    assert.equal(roles, ['user', 'assistant', 'tool', 'user'], transcript(steered))
    assert.match(transcript(steered), 'tooled')
  })

  test(`${where} a removed turn is not replayed, and earlier turns are`, async () => {
    const id = await newSession(sandbox)
    model.script([{ text: 'noted the first' }, { text: 'noted the second' }, { text: 'the first' }])
    await prompt(id, 'remember blue')
    await prompt(id, 'remember crimson')
    assert.match(transcript(), 'blue')
    assert.match(await svc.svc('session', 'rewind', id), 'rewound to before: remember crimson')
    await prompt(id, 'which colour?')
    assert.match(transcript(), 'remember blue')
    assert.match(transcript(), 'noted the first')
    assert.not.match(transcript(), /crimson|the second/)
  })

  test(`${where} a fork continues the conversation in its own files`, async () => {
    const id = await newSession(sandbox)
    model.script([{ text: 'noted' }, use('write', { path: 'forked.txt', content: 'fork' }), { text: 'written' }])
    await prompt(id, 'remember turquoise')
    const reply = await svc.json<{ session: { id: string; workspace_path: string } }>('session', 'fork', id)
    const { session } = reply
    assert.is.not(session.workspace_path, repository)
    await prompt(session.id, 'write it down')
    assert.match(transcript(), 'remember turquoise')
    assert.ok(existsSync(join(session.workspace_path, 'forked.txt')), transcript())
    assert.not(existsSync(join(repository, 'forked.txt')))
    model.script([{ text: 'nothing of it' }])
    await prompt(id, 'what do you know?')
    assert.not.match(transcript(), 'write it down')
  })

  test(`${where} a child is limited to the tools it was granted and refused others`, async () => {
    const id = await newSession(sandbox)
    const spawn = (paths: string) => use('run', { command: `svc spawn "$SVC_AGENT" --paths ${paths} --json` })
    model.script([spawn('/'), spawn(join(repository, 'src')), { text: 'spawned' }])
    await prompt(id, 'delegate it')
    const [more, less = ''] = model.results()
    assert.match(more ?? '', /spawn_rights_exceeded/, transcript())
    const child = /ses_[0-9a-f]+/.exec(less.replaceAll(id, ''))?.[0] ?? ''
    assert.is.not(child, '', less)
    const outside = join(repository, 'child.txt')
    model.script([
      use('write', { path: outside, content: 'x' }),
      use('write', { path: '../child.txt', content: 'x' }),
      use('read', { path: join(repository, 'README.md') }),
      use('read', { path: 'main.ts' }),
      { text: 'done' },
    ])
    await prompt(child, 'look around')
    const results = model.results()
    for (const refused of results.slice(0, 3)) assert.match(refused, /outside of the workspace/, transcript())
    assert.match(results[3] ?? '', /spawned without the tool/, transcript())
    assert.not(existsSync(outside))
  })

  test(`${where} deny-all changes nothing and runs nothing`, async () => {
    const id = await newSession(sandbox, 'deny-all')
    model.script([
      use('write', { path: 'denied.txt', content: 'x' }),
      use('run', { command: 'touch denied.txt' }),
      use('read', { path: 'README.md' }),
      { text: 'refused' },
    ])
    await prompt(id, 'write it')
    assert.is(model.results().length, 3, transcript())
    assert.not(existsSync(join(repository, 'denied.txt')))
  })

  test(`${where} a conversation continues after a cancel and after a restart of the daemon`, async () => {
    const id = await newSession(sandbox)
    model.script([
      { text: 'word '.repeat(600), dripMs: 50 },
      { text: 'after the cancel' },
      { text: 'after the restart' },
    ])
    const turn = svc.start(['session', 'prompt', id, 'remember violet'])
    await turn.shows(/word word/)
    await svc.svc('session', 'cancel', id)
    await turn.ended
    assert.match(await prompt(id, 'go on'), 'after the cancel')
    assert.match(transcript(), 'remember violet')
    await svc.svc('daemon', 'restart')
    assert.match(await prompt(id, 'and now'), 'after the restart')
    const roles = (model.asked.at(-1)?.messages ?? []).slice(1).map(({ role }) => role)
    // Loaded word for word, and not told as a summary.
    assert.equal(roles, ['user', 'assistant', 'user', 'assistant', 'user'], transcript())
  })
}

test.run()
