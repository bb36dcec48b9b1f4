import { mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin } from '../../../../kernel/plugin.js'
import sidecars from '../../../../plugins/agents/sidecars/index.js'
import { revisionTable } from '../../../../plugins/agents/sidecars/revisions.js'
import sessions from '../../../../plugins/work/sessions/index.js'
import { label, testCases } from '../../../fixtures/cases.js'
import { agentText, openWorld } from '../../../fixtures/session-world.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'
import { PLUGINS as AGENTS, type Scene, scene } from '../agents/agents-scene.js'

const PLUGINS = [...AGENTS, sessions, sidecars]

const POLICY = '---\nsummary: Look.\npreferences: { min_interval: 10m }\n---\nAsk.\n'
const at = (which: string, agent = 'writer', rest = '') => `/api/agents/${agent}/${which}${rest}`

/** Codes of what is wrong with a text, with line and column where they are known. */
async function faults(s: Scene, which: 'soul' | 'heartbeat', body: string): Promise<string[]> {
  const reply = await s.request('POST', at(which, 'writer', '/validate'), { body })
  assert.is(reply.status, reply.body.valid ? 200 : 422)
  return reply.body.diagnostics.map(
    ({ code, line, column }: Record<string, string>) => `${code}${line === undefined ? '' : ` ${line}:${column}`}`,
  )
}

const head = (...lines: string[]) => ['---', ...lines, '---', 'Text.'].join('\n')
const window = (start: string, end: string, timezone: string) =>
  head('preferences:', '  active_hours:', `    - { start: ${start}, end: ${end}, timezone: ${timezone} }`)
const ok = ['"08:00"', '"20:00"'] as const
/** Texts with the codes and positions of their faults. */
const POLICIES: readonly [string, string[]][] = [
  ['no head at all', []],
  [POLICY, []],
  [window(...ok, 'Europe/Paris'), []],
  [window(...ok, '"+02:00"'), ['heartbeat_invalid_timezone 4:49']],
  [window(...ok, 'GMT+2'), ['heartbeat_invalid_timezone 4:49']],
  [window(...ok, 'Mars/Olympus'), ['heartbeat_invalid_timezone 4:49']],
  [window('"8:00"', '"24:00"', 'UTC'), ['heartbeat_invalid_window 4:16', 'heartbeat_invalid_window 4:29']],
  [window('"08:00"', '"08:00"', 'UTC'), ['heartbeat_invalid_window 4:30']],
  [head('tools: []'), ['heartbeat_forbidden_field 2:1']],
  [head('colour: red'), ['heartbeat_unknown_field 2:1']],
  [head('__proto__: 1'), ['heartbeat_unknown_field 2:1']],
  [head('enabled: "yes"'), ['heartbeat_invalid_field_type 2:1']],
  [head('preferences: { min_interval: soon }'), ['heartbeat_invalid_field_type 2:30']],
  [head('preferences: { min_interval: 1m }'), ['heartbeat_preference_clamped 2:30']],
  [head('version: 2'), ['heartbeat_unsupported_version 2:1']],
  [head('context: { include: 7 }'), ['heartbeat_invalid_field_type 2:21']],
  [head('a: [').replace('Text.', ''), ['heartbeat_frontmatter_invalid 2:5']],
  ['---\nenabled: true\n', ['heartbeat_frontmatter_invalid 1:1']],
  ['One.\n\n## Task runs\n', ['heartbeat_reserved_body_field 3:1']],
  ['lease: forever\n```\ntools: x\n```\n', ['heartbeat_reserved_body_field 1:1']],
  ['é'.repeat(16_385), ['heartbeat_oversized_body 1:1']],
  [`---\nsummary: ${'x'.repeat(600_000)}\n---\n`, ['heartbeat_oversized_file']],
]
const SOULS: readonly [string, string[]][] = [
  ['---\nversion: 1\nrole: Critic\ntone: [dry]\n---\nYou doubt.', []],
  ['---\nmodel: m\n---\n', ['forbidden_field 2:1']],
  ['---\ntone: dry\n---\n', ['invalid_field_type 2:1']],
  ['# Permissions\nall', ['forbidden_section 1:1']],
  ['x'.repeat(32_769), ['oversized_body 1:1']],
]

testCases({
  open: async () => {
    const s = await scene({ plugins: [sessions, sidecars] })
    await s.write(s.homeAgents, 'writer')
    return s
  },
  close: s => s.end(),
  cases: [
    ...POLICIES.map(([text, expected]) => ({ which: 'heartbeat' as const, text, expected })),
    ...SOULS.map(([text, expected]) => ({ which: 'soul' as const, text, expected })),
  ],
  name: ({ which, text, expected }) => `a ${which} has the faults [${expected}]: ${label(text, 40)}`,
  run: async (s, { which, text, expected }) => assert.equal(await faults(s, which, text), expected),
})

for (const [which, file] of [
  ['soul', 'SOUL.md'],
  ['heartbeat', 'HEARTBEAT.md'],
] as const) {
  test(`${file}: writes, changes, rollbacks and deletions need the digest; a stale one changes nothing`, async () => {
    const s = await scene({ plugins: [sessions, sidecars] })
    const agent = await s.write(s.homeAgents, 'writer')
    const at = `/api/agents/writer/${which}`
    const target = path.join(path.dirname(agent), file)
    const missing = await s.request('GET', at)
    assert.equal([missing.status, missing.body.validation_status, missing.body.present], [200, 'missing', false])
    assert.is(await s.outcome('PUT', at, { body: 'One.', expected_digest: 'sha256:0' }), '409 sidecar_changed')
    const one = await s.request('PUT', at, { body: 'One.\n', expected_digest: '', idempotency_key: 'k' })
    assert.equal([one.status, one.body[which].validation_status], [200, 'valid'])
    assert.equal([await readFile(target, 'utf8'), (await stat(target)).mode & 0o777], ['One.\n', 0o644])
    const { digest } = one.body[which]
    // The same request again is the same change; its key with another text is a conflict.
    const again = await s.request('PUT', at, { body: 'One.\n', expected_digest: '', idempotency_key: 'k' })
    assert.is(again.body.revision.id, one.body.revision.id)
    const other = { body: 'Other.', expected_digest: digest, idempotency_key: 'k' }
    assert.is(await s.outcome('PUT', at, other), '409 sidecar_idempotency_conflict')
    const stale = await s.request('PUT', at, { body: 'Two.' })
    assert.equal([stale.status, stale.body.details.digest], [409, digest])
    const broken = await s.request('PUT', at, { body: '---\nmodel: m\n---\n', expected_digest: digest })
    assert.equal([broken.status, broken.body.valid], [422, false])
    assert.is(await readFile(target, 'utf8'), 'One.\n')
    // A hand writes in between: the daemon's copy is stale, and what the hand wrote can be had again.
    await writeFile(target, 'By hand.\n')
    assert.is(await s.outcome('PUT', at, { body: 'Two.', expected_digest: digest }), '409 sidecar_changed')
    const hand = (await s.request('GET', at)).body.digest
    const all = await Promise.all(['a', 'b', 'c'].map(body => s.outcome('PUT', at, { body, expected_digest: hand })))
    assert.equal(all.sort(), ['200', '409 sidecar_changed', '409 sidecar_changed'])
    const { revisions } = (await s.request('GET', `${at}/history`)).body
    assert.equal(
      revisions.map(({ actor }: { actor: { ref: string } }) => actor.ref),
      ['daemon-control', 'file', 'daemon-control'],
    )
    const page = (await s.request('GET', `${at}/history?limit=1`)).body
    assert.is(
      (await s.request('GET', `${at}/history?cursor=${page.next_cursor}`)).body.revisions[0].id,
      revisions[1].id,
    )
    const now = (await s.request('GET', at)).body.digest
    const back = { revision_id: revisions[1].id, expected_digest: now }
    const restored = await s.request('POST', `${at}/rollback`, back)
    assert.equal([restored.status, await readFile(target, 'utf8')], [200, 'By hand.\n'])
    assert.is(await s.outcome('POST', `${at}/rollback`, back), '409 sidecar_changed')
    const absent = { revision_id: 'rev_0', expected_digest: hand }
    assert.is(await s.outcome('POST', `${at}/rollback`, absent), '404 sidecar_revision_not_found')
    const unknown = await s.request('POST', `${at}/rollback`, absent)
    assert.is(unknown.body.details.next, `svc agent ${which} history writer`)
    assert.is(await s.outcome('DELETE', at, { expected_digest: digest }), '409 sidecar_changed')
    const removal = await s.request('DELETE', at, { expected_digest: hand })
    assert.equal([removal.status, removal.body[which].present], [200, false])
    const empty = { revision_id: removal.body.revision.id, expected_digest: '' }
    assert.is(await s.outcome('POST', `${at}/rollback`, empty), '409 sidecar_revision_empty')
    assert.is(await s.outcome('DELETE', at, { expected_digest: '' }), '404 sidecar_missing')
    assert.equal(await readdir(path.dirname(agent)), ['AGENT.md'])
    const header = await s.kernel.inject({
      method: 'PUT',
      url: at,
      headers: { 'if-match': '"x"' },
      body: { body: 'x', expected_digest: '' },
    })
    assert.match(header.body, 'heartbeat_if_match_header_unsupported')
    assert.is(await s.outcome('GET', `/api/agents/nobody/${which}`), '404 agent_not_found')
    await s.end()
  })
}

test('the history of SOUL.md and HEARTBEAT.md survives a move of the home and of a workspace', async () => {
  const folder = await temporaryFolder('moved')
  const [before, home] = [path.join(folder, 'before'), path.join(folder, 'after')]
  await mkdir(before)
  const first = await scene({ plugins: [sessions, sidecars], home: before })
  await first.write(first.homeAgents, 'writer')
  await first.write(first.own, 'local')
  const queries = { writer: '', local: `?workspace_id=${first.workspaceId}` }
  for (const which of ['soul', 'heartbeat'])
    for (const agent of ['writer', 'local'] as const) {
      const asked = agent === 'local' ? { workspace_id: first.workspaceId } : {}
      const one = await first.request('PUT', at(which, agent), { ...asked, body: 'One.', expected_digest: '' })
      const change = { ...asked, body: 'Two.', expected_digest: one.body[which].digest }
      assert.is(await first.outcome('PUT', at(which, agent), change), '200')
    }
  const root = `${first.root}-moved`
  await first.close()
  await rename(before, home)
  await rename(first.root, root)
  const svc = await boot({ home, plugins: PLUGINS })
  try {
    assert.is((await svc.request('POST', '/api/workspaces', { root_dir: root })).body.workspace.id, first.workspaceId)
    for (const which of ['soul', 'heartbeat'])
      for (const agent of ['writer', 'local'] as const) {
        const query = queries[agent]
        const { revisions } = (await svc.request('GET', `${at(which, agent, '/history')}${query}`)).body
        assert.is(revisions.length, 2, `${which} of ${agent}`)
        const now = await svc.request('GET', `${at(which, agent)}${query}`)
        assert.is(revisions[0].source_path, now.body.source_path)
        if (which === 'soul') assert.is(now.body.revision_id, revisions[0].id)
        const back = {
          ...(agent === 'local' && { workspace_id: first.workspaceId }),
          revision_id: revisions[1].id,
          expected_digest: now.body.digest,
        }
        assert.is((await svc.request('POST', at(which, agent, '/rollback'), back)).status, 200)
        assert.is(await readFile(now.body.source_path, 'utf8'), 'One.')
      }
  } finally {
    await svc.close()
    await rm(folder, { recursive: true, force: true })
    await rm(root, { recursive: true, force: true })
  }
})

test('a history of the previous version is found again, also after a move of the home', async () => {
  const home = await temporaryFolder('old-rows')
  let written = () => {}
  const isWritten = new Promise<void>(resolve => {
    written = resolve
  })
  // What a version without the column did: a row of a path of then, and no place.
  const old = definePlugin({ name: 'sidecars', version: '0.0.1' }).surface({
    tables: [{ id: '001-revision', sql: revisionTable }],
    services: [
      {
        name: 'writes',
        run: async kernel => {
          await kernel.db.tx(t => {
            const row = `INSERT INTO sidecars_revision (id, which, path, agent_name, operation, actor_kind, actor_ref, text, request, at)
              VALUES (?, 'soul', ?, 'writer', 'write', 'user', 'file', 'Old.', '', 1)`
            t.run(row, ['rev_here', path.join(home, 'agents/writer/SOUL.md')])
            t.run(row, ['rev_there', '/srv/former/home/agents/writer/SOUL.md'])
            t.run(row, ['rev_of_workspace', '/srv/project/.svc/agents/writer/SOUL.md'])
          })
          written()
        },
      },
    ],
  })
  const before = await boot({ home, plugins: [old] })
  await isWritten
  await before.close()
  const s = await scene({ plugins: [sessions, sidecars], home })
  try {
    await s.write(s.homeAgents, 'writer')
    const { revisions } = (await s.request('GET', at('soul', 'writer', '/history'))).body
    assert.equal(
      revisions.map(({ id }: { id: string }) => id),
      ['rev_there', 'rev_here'],
    )
  } finally {
    await s.end()
    await rm(home, { recursive: true })
  }
})

test('a link out of the agent folder is neither read nor written through', async () => {
  const s = await scene({ plugins: [sessions, sidecars] })
  const outside = await temporaryFolder('outside')
  const secret = path.join(outside, 'secret')
  await writeFile(secret, 'top secret')
  const folder = path.dirname(await s.write(s.own, 'writer'))
  await symlink(secret, path.join(folder, 'HEARTBEAT.md'))
  const query = `?workspace_id=${s.workspaceId}`
  const seen = await s.request('GET', at('heartbeat', 'writer', query))
  assert.is(seen.status, 422)
  assert.equal(
    seen.body.diagnostics.map(({ code }: { code: string }) => code),
    ['heartbeat_path_escape'],
  )
  assert.not.match(JSON.stringify(seen.body), 'top secret')
  const put = { body: POLICY, expected_digest: seen.body.digest, workspace_id: 'w' }
  assert.is(await s.outcome('PUT', at('heartbeat'), put), '409 sidecar_unwritable')
  assert.is(await readFile(secret, 'utf8'), 'top secret')
  // A folder of the agent that leads out, with a definition that leads back in.
  const real = path.join(s.root, 'AGENT.md')
  await writeFile(real, '---\nname: sly\n---\nDo it.')
  await symlink(real, path.join(outside, 'AGENT.md'))
  await writeFile(path.join(outside, 'SOUL.md'), 'top secret')
  await symlink(outside, path.join(s.own, 'sly'))
  const sly = await s.request('GET', at('soul', 'sly', query))
  assert.equal(
    sly.body.diagnostics?.map(({ code }: { code: string }) => code),
    ['path_escape'],
  )
  await rm(outside, { recursive: true })
  await s.end()
})

test('a record belongs to the agent record with its id, owner and scope, and is read-only here', async () => {
  const s = await scene({ plugins: [sessions, sidecars] })
  const put = (kind: string, id: string, scope: object, spec: object) =>
    s.outcome('PUT', `/api/resources/${kind}/${id}`, { expected_version: 0, scope, spec })
  const here = { kind: 'workspace', id: s.workspaceId }
  const soul = { agent_id: 'agt_1', agent_name: 'packed', content: 'You are kind.', source_path: 'x/SOUL.md', extra: 1 }
  assert.is(await put('agent', 'agt_1', here, { name: 'packed', prompt: 'Do it.' }), '201')
  assert.is(await put('agent.soul', 'sol_1', { kind: 'global' }, soul), '201')
  const read = async () => (await s.request('GET', at('soul', 'packed', '?workspace_id=w'))).body
  assert.is((await read()).validation_status, 'missing')
  assert.is(await put('agent.soul', 'sol_2', here, { ...soul, agent_id: 'agt_2' }), '201')
  assert.is((await read()).validation_status, 'missing')
  assert.is(await put('agent.soul', 'sol_3', here, soul), '201')
  const { body, source_path, validation_status, digest } = await read()
  assert.equal([body, source_path, validation_status], ['You are kind.', 'x/SOUL.md', 'valid'])
  const change = { workspace_id: 'w', expected_digest: digest }
  assert.is(await s.outcome('PUT', at('soul', 'packed'), { ...change, body: 'No.' }), '409 sidecar_read_only')
  assert.is(await s.outcome('DELETE', at('soul', 'packed'), change), '409 sidecar_read_only')
  const back = { ...change, revision_id: 'rev_1' }
  assert.is(await s.outcome('POST', at('soul', 'packed', '/rollback'), back), '409 sidecar_read_only')
  assert.is(await put('agent.soul', 'sol_4', here, { ...soul, content: '# Tools' }), '422 invalid_spec')
  assert.is(await put('agent.heartbeat', 'hbt_1', here, { ...soul, content: 'tools: x' }), '422 invalid_spec')
  await s.end()
})

test('an agent with an invalid persona is not started; a valid one is given to it', async () => {
  const world = await openWorld({ plugins: [sidecars] })
  await world.agent('writer')
  const file = path.join(world.root, '.svc', 'agents', 'writer', 'SOUL.md')
  await writeFile(file, '---\nmodel: m\n---\n')
  const body = { workspace: world.workspaceId, agent_name: 'writer' }
  const refused = await world.kernel.request('POST', '/api/sessions', body)
  assert.equal([refused.status, refused.body.code, refused.body.details.path], [422, 'soul_invalid', file])
  await writeFile(file, '---\nrole: Critic\ntags: [x]\n---\nYou doubt.\n')
  const { at } = await world.session('writer')
  assert.match(
    agentText(await world.prompt(at, 'echo')),
    /You do what you are told\.\\n\\nRole: Critic\\n\\nYou doubt\./,
  )
  await world.close()
})

test('doctor names invalid and unreadable files', async () => {
  const s = await scene({ plugins: [sessions, sidecars] })
  const folder = path.dirname(await s.write(s.homeAgents, 'writer'))
  await writeFile(path.join(folder, 'SOUL.md'), '---\nmodel: m\n---\n')
  await writeFile(path.join(folder, 'HEARTBEAT.md'), Buffer.from([0xff, 0xfe]))
  const { items } = (await s.request('GET', '/api/doctor?only=sidecars')).body
  assert.equal(items.map(({ code }: { code: string }) => code).sort(), ['heartbeat_invalid', 'soul_invalid'])
  // What a report knows of a file holds until the file changes, by its content or by an agent that comes.
  const codes = async () =>
    (await s.request('GET', '/api/doctor?only=sidecars')).body.items.map(({ code }: { code: string }) => code).sort()
  await writeFile(path.join(folder, 'SOUL.md'), 'You doubt.\n')
  assert.equal(await codes(), ['heartbeat_invalid'])
  assert.equal(await codes(), ['heartbeat_invalid'])
  await writeFile(path.join(folder, 'SOUL.md'), '---\nmodel: m\n---\n')
  const other = path.dirname(await s.write(s.own, 'other'))
  await writeFile(path.join(other, 'SOUL.md'), '---\nmodel: m\n---\n')
  assert.equal(await codes(), ['heartbeat_invalid', 'soul_invalid', 'soul_invalid'])
  await rm(other, { recursive: true })
  assert.equal(await codes(), ['heartbeat_invalid', 'soul_invalid'])
  await rm(path.join(folder, 'HEARTBEAT.md'))
  await mkdir(path.join(folder, 'HEARTBEAT.md'))
  const seen = await s.request('GET', at('heartbeat'))
  assert.equal([seen.status, seen.body.diagnostics[0].code], [422, 'heartbeat_unreadable'])
  await s.end()
})

test('an editor gets the text as it is in the file, valid or not, with the digest that a change needs', async () => {
  const s = await scene({ plugins: [sessions, sidecars] })
  await s.write(s.homeAgents, 'writer')
  const text = async (which: string) => (await s.request('GET', at(which, 'writer', '/text'))).body
  const file = (which: string) => path.join(s.homeAgents, 'writer', `${which.toUpperCase()}.md`)
  const none = { present: false, validation_status: 'missing', diagnostics: [], source_path: file('soul') }
  assert.equal(await text('soul'), none as never, 'no file')
  const soul = '---\n# a comment\nrole: Critic\n---\n\nYou doubt.\n\n'
  await writeFile(file('soul'), soul)
  const read = await text('soul')
  assert.equal([read.text, read.validation_status], [soul, 'valid'])
  const body = { body: soul.replace('doubt', 'ask'), expected_digest: read.digest }
  assert.is((await s.request('PUT', at('soul'), body)).status, 200)
  assert.is((await s.request('PUT', at('soul'), body)).status, 409)
  await writeFile(file('heartbeat'), '---\ncolour: red\n---\nAsk.\n')
  const broken = await text('heartbeat')
  assert.equal([broken.text, broken.validation_status], ['---\ncolour: red\n---\nAsk.\n', 'invalid'])
  assert.is(broken.diagnostics[0].code, 'heartbeat_unknown_field')
  await s.end()
})

test.run()
