import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { auth, extensions, identity, settings, skills, tools, trust } from '../../../../plugins/index.js'
import { AGENT, agentText, openWorld, type World } from '../../../fixtures/session-world.js'
import { skillText, writeSkill } from './scene.js'

const bin = fileURLToPath(new URL('../../../../dist/bin', import.meta.url))
const plugins = [auth, identity, settings, trust, skills]

/** An agent of the home: one of a workspace would have to be trusted. */
async function reader({ home }: World): Promise<void> {
  const folder = path.join(home, 'agents', 'reader')
  await mkdir(folder, { recursive: true })
  const head = `name: reader\npermissions: approve-all\ncommand: '${process.execPath} ${AGENT}'`
  await writeFile(path.join(folder, 'AGENT.md'), `---\n${head}\n---\nYou read.\n`)
}

test('an agent gets the list of its skills at the start of a session, and reads one with svc', async () => {
  const world = await openWorld({
    plugins,
    listen: ['socket'],
    env: { ...process.env, SVC_BIN_DIR: bin, PATH: `${bin}:${process.env.PATH}` },
  })
  try {
    await reader(world)
    await writeSkill(path.join(world.home, 'skills'), 'deploy', 'Run the deployment twice.')
    await writeSkill(path.join(world.home, 'skills'), 'elsewhere', '', [
      'metadata: { svc: { when: { platforms: [plan9] } } }',
    ])
    await writeSkill(path.join(world.root, '.svc', 'skills'), 'foreign')
    const first = await world.session('reader')
    const hears = agentText(await world.prompt(first.at, 'echo'))
    assert.match(hears, /svc skill content <name>/)
    assert.match(hears, '- deploy: What deploy is for')
    assert.match(hears, '- svc-session: ')
    assert.not.match(hears, 'elsewhere', 'an inactive one')
    assert.not.match(hears, 'foreign', 'one that nobody trusts')

    // The process that it starts has the socket of the session, and gets what the session sees.
    const reads = async (command: string) => {
      await world.prompt(first.at, `shell ${command} > out.txt 2>&1; echo $? >> out.txt`)
      const { readFile } = await import('node:fs/promises')
      return readFile(path.join(world.root, 'out.txt'), 'utf8')
    }
    assert.is(await reads('svc skill content deploy'), 'Run the deployment twice.\n0\n')
    assert.match(await reads('svc skill content foreign'), /no(t| such).*\n4\n$/s)
    assert.match(await reads('svc skill list'), /deploy/)
    assert.match(await reads('svc skill disable deploy'), /\n6\n$/, 'an agent switches nothing')

    await world.kernel.request('POST', '/api/skills/deploy/disable')
    const second = await world.session('reader')
    assert.not.match(agentText(await world.prompt(second.at, 'echo')), '- deploy')
    assert.match(await reads('svc skill content deploy'), /disabled.*\n4\n$/s)
  } finally {
    await world.close()
  }
})

test('a skill that requires tools is active when all are available', async () => {
  const world = await openWorld({ plugins: [...plugins, extensions, tools] })
  try {
    await reader(world)
    const folder = path.join(world.home, 'skills')
    const needs = (names: string) => [`metadata: { svc: { when: { requires_tools: [${names}] } } }`]
    await writeSkill(folder, 'possible', '', needs('service__skill_view'))
    await writeSkill(folder, 'impossible', '', needs('service__skill_view, service__nothing'))
    const { at } = await world.session('reader')
    const hears = agentText(await world.prompt(at, 'echo'))
    assert.match(hears, '- possible: ')
    assert.not.match(hears, 'impossible')
    const { skill } = (await world.kernel.request('GET', '/api/skills/impossible')).body
    assert.equal(skill.activation.reasons[0].missing, ['service__nothing'])
  } finally {
    await world.close()
  }
})

test('the list of skills has a budget, and omitted ones are counted', async () => {
  const world = await openWorld({ plugins, config: { skills: { context_bytes: 1000 } } })
  try {
    await reader(world)
    const folder = path.join(world.home, 'skills')
    for (let n = 0; n < 150; n++) await writeSkill(folder, `skill-${n}`)
    await mkdir(path.join(folder, 'long'))
    const long = skillText('aaa-long').replace('What aaa-long is for', `Long ${'words '.repeat(100)}`)
    await writeFile(path.join(folder, 'long', 'SKILL.md'), long)
    const { at, id } = await world.session('reader')
    const hears: string = JSON.parse(agentText(await world.prompt(at, 'echo')))[0]
    const list = hears.slice(hears.indexOf('Skills are'))
    const lines = list.split('\n')
    const listed = lines.filter(line => line.startsWith('- ')).length
    assert.ok(Buffer.byteLength(list) <= 1000, `${Buffer.byteLength(list)} bytes`)
    assert.match(lines.at(-1) ?? '', `${154 - listed} more: svc skill list`)
    assert.match(list, /- aaa-long: Long .*…/)
    assert.ok(id)
  } finally {
    await world.close()
  }
})

test('no agent gets a list of skills without skills.enabled', async () => {
  const world = await openWorld({ plugins, config: { skills: { enabled: false } } })
  try {
    await reader(world)
    const { at } = await world.session('reader')
    assert.not.match(agentText(await world.prompt(at, 'echo')), 'Skills are')
  } finally {
    await world.close()
  }
})

test.run()
