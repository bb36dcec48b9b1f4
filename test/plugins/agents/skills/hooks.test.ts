// timeout: 120s
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { hashFiles } from '../../../../plugins/agents/skills/tree-hash.js'
import { skills, trust } from '../../../../plugins/index.js'
import { AGENT, eventually } from '../../../fixtures/session-world.js'
import { openScene, type Scene } from '../../work/hooks/scene.js'
import { skillText } from './scene.js'

const test = suite<{ scene: Scene }>('skill hooks')
test.before(async context => {
  context.scene = await openScene({}, { plugins: [skills, trust] })
  // Of the person: the workspace is not trusted when the tests begin.
  const folder = path.join(context.scene.home, 'agents/ada')
  await mkdir(folder, { recursive: true })
  const head = ['name: ada', 'permissions: approve-all', `command: '${process.execPath} ${AGENT}'`]
  await writeFile(path.join(folder, 'AGENT.md'), `---\n${head.join('\n')}\n---\nYou do what you are told.\n`)
})
test.after(({ scene }) => scene.close())

/** A skill whose hook runs its own file. */
async function skill(folder: string, name: string, more: readonly string[] = [], event = 'session.post_create') {
  const at = path.join(folder, name)
  await mkdir(at, { recursive: true })
  const hook = [`event: ${event}`, 'command: ./note.sh', `args: [ran, ./note.sh]`, ...more].join(', ')
  const head = ['metadata:', '  svc:', '    hooks:', `      of-${name}: { ${hook} }`]
  await writeFile(path.join(at, 'SKILL.md'), skillText(name, 'Steps.', head))
  await writeFile(path.join(at, 'note.sh'), '#!/bin/sh\necho "$@" >> "$(dirname "$0")/ran.txt"\n', { mode: 0o755 })
  return at
}

const listed = async ({ kernel }: Scene, query = '') => {
  const { body } = await kernel.request('GET', `/api/hooks/catalog?source=skill${query}`)
  return body.hooks.map(({ name }: { name: string }) => name)
}
const switched = async ({ kernel }: Scene, name: string, how: 'enable' | 'disable', query = '') =>
  assert.is((await kernel.request('POST', `/api/skills/${name}/${how}${query}`, {})).status, 200)
const ofHook = (name: string) => (run: { hook_name: string; outcome: string }) => run.hook_name === name

test('the hook of a user skill runs in its order, and is removed when the skill is disabled', async ({ scene }) => {
  const folder = path.join(scene.home, 'skills')
  const at = await skill(folder, 'notes', ['mode: sync'], 'session.pre_create')
  assert.equal(await listed(scene), ['of-notes'])
  const { body } = await scene.kernel.request('GET', '/api/hooks/catalog?event=session.pre_create')
  const [hook] = body.hooks
  assert.equal([hook.source, hook.priority, hook.skill_source, hook.owner], ['skill', 0, 'notes', 'notes'])
  await scene.session('ada', { sandbox: 'none' })
  await eventually(async () => existsSync(path.join(at, 'ran.txt')), 'the program of the hook')
  assert.is(await readFile(path.join(at, 'ran.txt'), 'utf8'), `ran ${at}/note.sh\n`)
  await switched(scene, 'notes', 'disable')
  assert.equal(await listed(scene), [])
  await scene.session('ada', { sandbox: 'none' })
  assert.is(await readFile(path.join(at, 'ran.txt'), 'utf8'), `ran ${at}/note.sh\n`)
  await switched(scene, 'notes', 'enable')
  assert.equal(await listed(scene), ['of-notes'])
  await scene.session('ada', { sandbox: 'none' })
  assert.is((await readFile(path.join(at, 'ran.txt'), 'utf8')).split('\n').length, 3)
})

test('a running session loses the hook of a disabled skill', async ({ scene }) => {
  await skill(path.join(scene.home, 'skills'), 'turns', ['mode: sync', 'required: true'], 'input.pre_submit')
  const { id, at } = await scene.session('ada', { sandbox: 'none' })
  await scene.prompt(at, 'pid')
  const count = async () => (await scene.runs(id, '&last=1000')).filter(ofHook('of-turns')).length
  await eventually(async () => (await count()) === 1, 'its first run')
  await switched(scene, 'turns', 'disable')
  await scene.prompt(at, 'pid')
  await switched(scene, 'turns', 'enable')
  await scene.prompt(at, 'pid')
  await eventually(async () => (await count()) === 2, 'its second run')
  await switched(scene, 'turns', 'disable')
})

test('hooks of an installed skill run only with the permission of the user', async ({ scene }) => {
  const folder = path.join(scene.home, 'skills')
  const at = await skill(folder, 'bought')
  const files = await Promise.all(
    ['SKILL.md', 'note.sh'].map(async name => ({ path: name, bytes: await readFile(path.join(at, name)) })),
  )
  const meta = {
    ...{ name: 'bought', registry: 'https://catalog.example', slug: 'bought' },
    ...{ installed_at: '2030-01-01T00:00:00.000Z', hash: hashFiles(files) },
  }
  await writeFile(path.join(at, '.svc-meta.json'), JSON.stringify(meta))
  assert.is((await scene.kernel.request('GET', '/api/skills/bought')).body.skill.source, 'marketplace')
  assert.not.ok((await listed(scene)).includes('of-bought'))
  const allow = (names: string[]) =>
    scene.kernel.request('PATCH', '/api/settings/skills', { config: { allowed_marketplace_hooks: names } })
  assert.is((await allow(['bought'])).status, 200)
  assert.ok((await listed(scene)).includes('of-bought'))
  assert.is((await allow([])).status, 200)
  assert.not.ok((await listed(scene)).includes('of-bought'))
})

test('hooks of a workspace need its trust, name no secrets and run only there', async ({ scene }) => {
  const folder = path.join(scene.root, '.svc/skills')
  const here = `&workspace=${scene.workspaceId}`
  await skill(folder, 'local')
  const trusted = async () => {
    const at = `/api/workspaces/${scene.workspaceId}/trust`
    const { digest } = (await scene.kernel.request('GET', at)).body.trust
    assert.is((await scene.kernel.request('PUT', at, { digest })).status, 200)
  }
  assert.not.ok((await listed(scene, here)).includes('of-local'))
  await trusted()
  assert.ok((await listed(scene, here)).includes('of-local'))
  assert.not.ok((await listed(scene)).includes('of-local'))
  const runsOf = async () => {
    const { id: later } = await scene.session('ada', { sandbox: 'none' })
    await scene.ran(later, ofHook('last'))
    return (await scene.runs(later, '&last=1000')).map(({ hook_name }) => hook_name)
  }
  await scene.configure({ last: { event: 'session.post_create', command: 'sleep', args: ['1'] } })
  // In force or not from the moment that the reply is there; what the hook writes makes the files others than were trusted.
  await trusted()
  const { id: trusting } = await scene.session('ada', { sandbox: 'none' })
  await scene.ran(trusting, ofHook('of-local'))
  await scene.ran(trusting, ofHook('last'))
  await trusted()
  assert.is((await scene.kernel.request('DELETE', `/api/workspaces/${scene.workspaceId}/trust`)).status, 204)
  assert.not.ok((await runsOf()).includes('of-local'))
  await skill(folder, 'local', ['secret_env: { A: env:HOME }'])
  await trusted()
  assert.not.ok((await listed(scene, here)).includes('of-local'))
})

test('a hook of a workspace with files changed since the trust is not run', async ({ scene }) => {
  const folder = path.join(scene.root, '.svc/skills')
  // Its hook writes beside itself: that is a change too.
  await rm(path.join(folder, 'local'), { recursive: true })
  const guard = path.join(await skill(folder, 'guard', [], 'session.post_stop'), 'note.sh')
  const own = path.join(scene.root, '.svc/agents/local')
  await mkdir(own, { recursive: true })
  const hook = '{ name: own, event: session.post_stop, command: ./own.sh }'
  const head = ['name: local', `command: '${process.execPath} ${AGENT}'`, `hooks: [${hook}]`]
  await writeFile(path.join(own, 'AGENT.md'), `---\n${head.join('\n')}\n---\nYou do what you are told.\n`)
  const programs = [guard, path.join(own, 'own.sh')]
  const write = async (touched: string) => {
    for (const [at, file] of programs.entries())
      await writeFile(file, `#!/bin/sh\ntouch ${path.join(scene.root, `${touched}-${at}`)}\n`, { mode: 0o755 })
  }
  const touched = (name: string) =>
    programs.filter((_, at) => existsSync(path.join(scene.root, `${name}-${at}`))).length
  const trustAt = `/api/workspaces/${scene.workspaceId}/trust`
  const trusted = async () => {
    const { digest } = (await scene.kernel.request('GET', trustAt)).body.trust
    assert.is((await scene.kernel.request('PUT', trustAt, { digest })).status, 200)
  }
  const stopped = async (meanwhile: () => Promise<void>) => {
    await trusted()
    const { id, at } = await scene.session('local', { sandbox: 'none' })
    await scene.prompt(at, 'pid')
    await meanwhile()
    assert.ok((await scene.kernel.request('POST', `${at}/stop`, {})).status < 300)
    return scene.ran(id, ofHook('own'))
  }
  await write('changed')
  const refused = await stopped(() => write('escaped'))
  assert.equal([refused.outcome, touched('escaped')], ['failed', 0])
  const ran = await stopped(async () => {})
  assert.is(ran.outcome, 'applied')
  await eventually(async () => touched('escaped') === programs.length, 'what was looked at and trusted runs')
})

test('an invalid hook of one skill does not affect those of others', async ({ scene }) => {
  const folder = path.join(scene.home, 'skills')
  await skill(folder, 'wrong', [], 'no.such.event')
  await mkdir(path.join(folder, 'odd'), { recursive: true })
  await writeFile(path.join(folder, 'odd/SKILL.md'), skillText('odd', 'Steps.', ['metadata: { svc: { hooks: [7] } }']))
  await skill(folder, 'right')
  const names = await listed(scene)
  assert.ok(names.includes('of-right'))
  assert.not.ok(names.includes('of-wrong'))
  const statusOf = async (name: string, query = '') => {
    const { body } = await scene.kernel.request('GET', `/api/skills/${name}${query}`)
    const [{ state, verification_status: status, warnings = [] }] = body.skill.diagnostics
    return [state, status, ...warnings.map(({ message }: { message: string }) => message)]
  }
  const [state, status, said, ...more] = await statusOf('wrong')
  assert.equal([state, status, more], ['valid', 'warning', []])
  assert.match(said, /^its hook "of-wrong" is not active: event /)
  assert.match((await statusOf('odd'))[2], /^its hook "0" is not active: /)
  assert.equal(await statusOf('right'), ['valid', 'passed'])
  await skill(path.join(scene.root, '.svc/skills'), 'local', ['secret_env: { A: env:HOME }'])
  assert.match(
    (await statusOf('local', `?workspace=${scene.workspaceId}`))[2],
    /a skill of a workspace cannot reference secrets/,
  )
  const { items } = (await scene.kernel.request('GET', '/api/doctor?only=skills')).body
  const found = items.filter(({ code }: { code: string }) => code === 'skill_hook_invalid')
  assert.equal(found.map(({ title }: { title: string }) => title.split('"')[1]).sort(), ['local', 'odd', 'wrong'])
})

test('the hook of a skill runs for the first event after a start, also for a closed session', async ({ scene }) => {
  const at = await skill(path.join(scene.home, 'skills'), 'early', [], 'session.attention.changed')
  const { id, at: session } = await scene.session('ada', { sandbox: 'none' })
  await scene.prompt(session, 'pid')
  const changed = () => existsSync(path.join(at, 'ran.txt'))
  await eventually(async () => changed(), 'the session wants attention')
  await rm(path.join(at, 'ran.txt'))
  await scene.restart()
  assert.ok((await scene.kernel.request('POST', `${session}/archive`)).status < 300)
  await eventually(async () => changed(), `the hook about ${id}`)
})

test.run()
