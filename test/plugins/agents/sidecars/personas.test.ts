import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, surfaceOf } from '../../../../kernel/plugin.js'
import { Sidecars } from '../../../../plugins/agents/sidecars/api.js'
import sidecars from '../../../../plugins/agents/sidecars/index.js'
import { SessionBriefings } from '../../../../plugins/work/sessions/api.js'
import { agentText, openWorld } from '../../../fixtures/session-world.js'
import { validateReply } from '../../../harness/contract.js'

const REFRESH = '/api/workspaces/{workspace_id}/sessions/{session_id}/soul/refresh'
const soul = (words: string) => `---\nrole: ${words}\n---\nYou are ${words}.\n`
const BROKEN = '---\nmodel: m\n---\n'

test('a session keeps its initial persona until it is given another', async () => {
  const taken: string[] = []
  const guest = { fails: false }
  const { contribute, tap } = surfaceOf<object>()
  const listener = definePlugin({
    name: 'listener',
    version: '0.0.1',
    requires: { sidecars: Sidecars },
  }).surface({
    taps: [
      tap(
        Sidecars,
        service => service.soulResolved,
        () =>
          ({ frontmatter }, { agentName }) =>
            void taken.push(`${agentName} ${frontmatter.role}`),
      ),
    ],
    registries: [
      contribute(SessionBriefings, () => [
        {
          name: 'guest',
          read: async () => {
            if (guest.fails) throw new Error('out of order')
            return undefined
          },
        },
      ]),
    ],
  })
  const world = await openWorld({ plugins: [sidecars, listener] })
  await world.agent('writer')
  await world.agent('loads', { flags: '--load' })
  const file = (agent: string) => path.join(world.root, '.svc', 'agents', agent, 'SOUL.md')
  const request = (method: string, url: string, body?: unknown) => world.kernel.request(method, url, body)
  const refresh = async (at: string, body: object) => {
    const reply = await request('POST', `${at}/soul/refresh`, body)
    assert.equal(validateReply('POST', REFRESH, reply.status, reply.body), [])
    return reply
  }
  const digestOf = async (agent: string) =>
    (await request('GET', `/api/agents/${agent}/soul?workspace_id=${world.workspaceId}`)).body.digest
  const hears = async (at: string) => agentText(await world.prompt(at, 'echo'))

  const without = await world.session('writer')
  for (const agent of ['writer', 'loads']) await writeFile(file(agent), soul('calm'))
  const calm = await world.session('writer')
  const loading = await world.session('loads')
  const waiting = await world.session('loads')
  // Its process starts only now: what counts is when the session began.
  for (const agent of ['writer', 'loads']) await writeFile(file(agent), soul('stern'))
  assert.match(await hears(calm.at), /Role: calm\\n\\nYou are calm\./)
  assert.match(await hears(loading.at), 'You are calm.')
  assert.not.match(await hears(without.at), 'Role:')

  // Who cannot say what an agent is to be told lets none begin, and nothing is left of it.
  guest.fails = true
  const begun = { workspace: world.workspaceId, agent_name: 'writer' }
  assert.is((await request('POST', '/api/sessions', begun)).body.code, 'session_briefing_failed')
  assert.is((await request('GET', '/api/sessions')).body.page.total, 4)
  guest.fails = false

  // The digest is that of the persona to be had, and a repetition with its key is the same refresh.
  const stern = await digestOf('loads')
  assert.is((await refresh(loading.at, { expected_digest: 'sha256:0' })).body.code, 'sidecar_changed')
  const once = { expected_digest: stern, idempotency_key: 'k' }
  const given = await refresh(loading.at, once)
  assert.equal([given.status, given.body.digest, given.body.body], [200, stern, 'You are stern.'])
  assert.match(await hears(loading.at), /^\["From now on, .*You are stern\.","echo"\]/)
  assert.is(await hears(loading.at), '["echo"]\n', 'told once')
  assert.is((await refresh(waiting.at, once)).status, 200)
  assert.equal(taken, ['writer calm', 'loads calm', 'loads calm', 'writer stern', 'loads stern', 'loads stern'])

  // One that is not valid: new sessions fail, none that began is touched, also not by a restart.
  for (const agent of ['writer', 'loads']) await writeFile(file(agent), BROKEN)
  const created = await request('POST', '/api/sessions', begun)
  assert.equal([created.status, created.body.code], [422, 'soul_invalid'])
  const refused = await refresh(calm.at, { expected_digest: await digestOf('writer') })
  assert.equal([refused.status, refused.body.valid], [422, false])
  await world.restart()
  assert.match(await hears(calm.at), 'You are calm.')
  assert.match(await hears(loading.at), 'You are stern.')
  assert.match(await hears(waiting.at), /Role: stern/)
  const again = await refresh(loading.at, once)
  assert.equal([again.status, again.body.valid], [200, false], 'repeated, though the file is another one by now')
  const other = { ...once, expected_digest: '' }
  assert.is((await refresh(loading.at, other)).body.code, 'sidecar_idempotency_conflict')

  // None at all is a persona too; a turn that runs, a session that is over and one of another place refuse.
  await rm(file('writer'))
  const none = await refresh(calm.at, { expected_digest: '' })
  assert.equal([none.status, none.body.present], [200, false])
  assert.match(await hears(calm.at), 'no longer applies')
  await request('POST', `${calm.at}/prompt`, { text: 'say x\nhang' })
  await world.until(calm.at, event => event.type === 'agent_message' && event.content.text === 'x\n')
  assert.equal((await refresh(calm.at, { expected_digest: '' })).body.code, 'session_busy')
  await request('POST', `${calm.at}/stop`, {})
  assert.equal((await refresh(calm.at, { expected_digest: '' })).body.code, 'session_stopped')
  assert.is((await refresh(calm.at.replace(calm.id, 'ses_0'), { expected_digest: '' })).status, 404)
  const answer = await request('GET', '/api/doctor?only=sidecars')
  assert.is(answer.body.items[0].code, 'soul_invalid')
  await world.close()
})

test('a session from before personas takes the current one at its next start and keeps it', async () => {
  const before = await openWorld()
  const { home, root } = before
  await before.agent('writer')
  await before.agent('loads', { flags: '--load' })
  const write = async (text: string) => {
    for (const agent of ['writer', 'loads']) await writeFile(path.join(root, '.svc', 'agents', agent, 'SOUL.md'), text)
  }
  await write(soul('calm'))
  const [told, loading, given, barred] = [
    await before.session('writer'),
    await before.session('loads'),
    await before.session('loads'),
    await before.session('writer'),
  ]
  const unused = await before.session('loads')
  for (const { at } of [told, loading, given, barred]) await before.prompt(at, 'say x')
  await before.kernel.close()

  const world = await openWorld({ home, root, plugins: [sidecars] })
  const hears = async (at: string) => agentText(await world.prompt(at, 'echo'))
  assert.match(await hears(told.at), /Role: calm.*You are calm\./)
  assert.match(await hears(loading.at), /^\["From now on, .*You are calm\.","echo"\]/)
  assert.is(await hears(loading.at), '["echo"]\n', 'told once')
  await write(BROKEN)
  const refused = await world.kernel.request('POST', `${barred.at}/prompt`, { text: 'echo' })
  assert.equal([refused.status, refused.body.code], [422, 'soul_invalid'])
  assert.is((await world.row(barred.id)).state, 'stopped')
  await write(soul('stern'))
  const { digest } = (await world.kernel.request('GET', `/api/agents/loads/soul?workspace_id=${world.workspaceId}`))
    .body
  const refreshed = await world.kernel.request('POST', `${given.at}/soul/refresh`, { expected_digest: digest })
  assert.is(refreshed.status, 200)
  await write(soul('loud'))
  assert.match(await hears(given.at), /^\["From now on, .*You are stern\.","echo"\]/)
  assert.match(await hears(barred.at), 'You are loud.')
  assert.match(await hears(unused.at), /^\["(?!From now).*You are loud\./)
  await world.restart()
  assert.match(await hears(told.at), 'You are calm.')
  assert.match(await hears(loading.at), 'You are calm.')
  await world.close()
  for (const folder of [home, root]) await rm(folder, { recursive: true, force: true })
})

test.run()
