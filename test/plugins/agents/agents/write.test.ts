import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { temporaryFolder } from '../../../harness/kernel.js'
import { scene } from './agents-scene.js'
import { FULL } from './full-definition.js'

const agent = { name: 'writer', prompt: '  Write.  ', model: 'm', category_path: ['Text', 'Long'] }

test('agents are created, read, updated and deleted in home and workspace; a hidden one reappears', async () => {
  const s = await scene()
  const global = (await s.request('POST', '/api/agents', { agent, scope: 'global' })).body.agent
  assert.equal([global.origin, global.prompt, global.category_path], ['global', 'Write.', ['Text', 'Long']])
  assert.is(await s.outcome('POST', '/api/agents', { agent, scope: 'global' }), '409 agent_exists')
  const body = { agent: { ...agent, model: 'n' }, scope: 'workspace', workspace: 'w' }
  const made = await s.request('POST', '/api/agents', body)
  assert.is(made.status, 201)
  assert.equal([made.body.agent.origin, made.body.agent.workspace_id], ['workspace', s.workspaceId])
  assert.is((await stat(path.join(s.own, 'writer', 'AGENT.md'))).mode & 0o777, 0o644)
  assert.is((await s.request('GET', '/api/agents/writer?workspace=w')).body.agent.model, 'n')
  assert.is((await s.request('GET', '/api/agents/writer')).body.agent.model, 'm')
  const put = { agent: { ...agent, model: 'o' }, workspace: s.root, expected_digest: made.body.agent.definition_digest }
  const updated = (await s.request('PUT', '/api/agents/writer', put)).body.agent
  assert.equal([updated.model, updated.origin], ['o', 'workspace'])
  assert.is((await s.request('GET', '/api/agents/writer')).body.agent.model, 'm')
  const first = await s.request('DELETE', `/api/agents/writer?workspace=${s.workspaceId}`)
  assert.equal(first.body, { name: 'writer', origin: 'workspace', unshadowed_origin: 'global' })
  const second = await s.request('DELETE', '/api/agents/writer?workspace=w')
  assert.equal(second.body, { name: 'writer', origin: 'global' })
  assert.is(await s.outcome('DELETE', '/api/agents/writer?workspace=w'), '404 agent_not_found')
  assert.equal(await readdir(s.own), [])
  await s.end()
})

test('an update needs the current digest of the file, also after a manual change', async () => {
  const s = await scene()
  const made = (await s.request('POST', '/api/agents', { agent, scope: 'global' })).body.agent
  const body = { agent, expected_digest: made.definition_digest }
  assert.is(await s.outcome('PUT', '/api/agents/writer', { agent }), '409 agent_changed')
  const file = await s.write(s.homeAgents, 'writer', ['model: by-hand'])
  const refused = await s.request('PUT', '/api/agents/writer', body)
  assert.is(refused.body.code, 'agent_changed')
  assert.match(await readFile(file, 'utf8'), 'by-hand')
  const expected_digest = refused.body.details.definition_digest
  assert.is(await s.outcome('PUT', '/api/agents/writer', { agent, expected_digest }), '200')
  // Of updates that begin with one digest exactly one wins.
  const now = (await s.request('GET', '/api/agents/writer')).body.agent.definition_digest
  const all = await Promise.all(
    ['a', 'b', 'c'].map(model =>
      s.outcome('PUT', '/api/agents/writer', { agent: { ...agent, model }, expected_digest: now }),
    ),
  )
  assert.equal(all.sort(), ['200', '409 agent_changed', '409 agent_changed'])
  await s.end()
})

test('one of many concurrent creations of a name wins, and no temporary file stays', async () => {
  const s = await scene()
  const all = await Promise.all(
    Array.from({ length: 8 }, (_, i) =>
      s.outcome('POST', '/api/agents', { agent: { ...agent, model: `m${i}` }, scope: 'global' }),
    ),
  )
  assert.is(all.filter(outcome => outcome === '201').length, 1)
  assert.equal(await readdir(path.join(s.homeAgents, 'writer')), ['AGENT.md'])
  await s.end()
})

test('an update keeps fields that no request can write: MCP servers with secrets, hooks, comments', async () => {
  const s = await scene()
  const file = await s.write(s.homeAgents, 'reviewer')
  await writeFile(file, FULL.replace('model: some-model', '# the cheap one\nmodel: some-model'))
  const { body } = await s.request('GET', '/api/agents/reviewer')
  const put = {
    agent: { name: 'reviewer', prompt: 'New.', model: 'other' },
    expected_digest: body.agent.definition_digest,
  }
  assert.is(await s.outcome('PUT', '/api/agents/reviewer', put), '200')
  const text = await readFile(file, 'utf8')
  for (const part of ['GIT_TOKEN: t0p', 'event: tool.pre_call', '# the cheap one', 'model: other']) {
    assert.ok(text.includes(part), part)
  }
  assert.not(text.includes('toolsets'), 'a field that is left out is gone')
  const copy = await s.request('POST', '/api/agents/reviewer/duplicate', {
    name: 'second',
    overrides: { model: 'third', skills: null },
    scope: 'workspace',
    workspace: 'w',
  })
  assert.equal([copy.status, copy.body.agent.origin, copy.body.agent.model], [201, 'workspace', 'third'])
  assert.match(await readFile(path.join(s.own, 'second', 'AGENT.md'), 'utf8'), 'GIT_TOKEN: t0p')
  assert.is((await s.request('POST', '/api/agents/reviewer/duplicate', { name: 'same' })).body.agent.origin, 'global')
  await s.end()
})

test('a refused request changes nothing', async () => {
  const s = await scene()
  const post = (over: object, more: object = { scope: 'global' }) =>
    s.outcome('POST', '/api/agents', { agent: { ...agent, ...over }, ...more })
  for (const name of ['Writer', '..', 'a/b', '', 'x'.repeat(65), '.svc', 'coordinator']) {
    assert.is(await post({ name }), '422 agent_invalid', name)
  }
  const odd = (await s.request('POST', '/api/agents', { agent: { ...agent, name: '../evil' }, scope: 'global' })).body
  assert.is(odd.error, '"../evil" is not a name of a-z, 0-9, _ and -, at most 64 characters')
  assert.is(odd.details.next, 'choose another name')
  assert.is(await post({ prompt: '  ' }), '422 agent_invalid')
  assert.is(await post({ prompt: 'x'.repeat(600_000) }), '422 agent_invalid')
  assert.is(await post({ command: 'rm -rf / | cat' }), '422 agent_invalid')
  assert.is(await post({ tools: ['*'] }), '422 agent_invalid')
  assert.is(await post({ mcp_servers: [] }), '400 invalid_request')
  assert.is(await post({}, { scope: 'workspace' }), '400 agent_workspace_missing')
  assert.is(await post({}, { scope: 'workspace', workspace: 'nope' }), '404 workspace_not_found')
  assert.is(await s.outcome('PUT', '/api/agents/other', { agent }), '422 agent_invalid')
  assert.is(await s.outcome('PUT', '/api/agents/writer', { agent }), '404 agent_not_found')
  assert.is(await s.outcome('DELETE', '/api/agents/general'), '409 agent_read_only')
  assert.is(await s.outcome('DELETE', '/api/agents/..%2F..%2Fx'), '404 agent_not_found')
  assert.equal(await readdir(s.homeAgents).catch(() => []), [])
  await rm(s.root, { recursive: true })
  assert.is(await post({}, { scope: 'workspace', workspace: 'w' }), '410 workspace_root_missing')
  await s.end()
})

test('a link to the outside is not written or removed through', async () => {
  const s = await scene()
  const outside = await temporaryFolder('agents-outside')
  const post = () => s.outcome('POST', '/api/agents', { agent, scope: 'workspace', workspace: 'w' })
  await symlink(outside, s.own)
  assert.is(await post(), '422 agent_unwritable')
  assert.equal(await readdir(outside), [])
  await rm(s.own)
  await mkdir(s.own, { recursive: true })
  await symlink(outside, path.join(s.own, 'writer'))
  assert.is(await post(), '422 agent_unwritable')
  assert.equal(await readdir(outside), [])
  const far = await s.write(outside, 'far')
  await symlink(path.dirname(far), path.join(s.own, 'far'))
  assert.is(await s.outcome('DELETE', '/api/agents/far?workspace=w'), '200')
  assert.match(await readFile(far, 'utf8'), 'name: far')
  await s.end()
  await rm(outside, { recursive: true })
})

test('a delete keeps other files of the agent, and removes a broken definition', async () => {
  const s = await scene()
  const file = await s.write(s.own, 'noted', ['nonsense: 1'])
  await writeFile(path.join(path.dirname(file), 'notes.md'), 'mine')
  assert.is(await s.outcome('DELETE', '/api/agents/noted?workspace=w'), '200')
  assert.equal(await readdir(path.dirname(file)), ['notes.md'])
  await s.end()
})

test.run()
