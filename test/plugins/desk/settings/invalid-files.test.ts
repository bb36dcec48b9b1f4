import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Reply } from '../../../harness/kernel.js'
import { type Scene, scene } from './scene.js'

type Daemon = Scene

async function withDaemon(config: string, work: (daemon: Daemon) => Promise<void>) {
  const daemon = await scene(config)
  try {
    await work(daemon)
  } finally {
    await daemon.close()
  }
}

const patch = (daemon: Daemon, key: string, value?: unknown, more: object = {}) =>
  daemon.request('PATCH', '/api/settings/keys', { changes: [{ key, ...(value !== undefined && { value }) }], ...more })
const shown = async (daemon: Daemon, key: string) =>
  (await daemon.request('GET', `/api/settings/keys/${key}`)).body.value

test('an invalid member is corrected by set or unset while the daemon runs; comments stay', () =>
  withDaemon('{ "log": { "level": "info" } }', async daemon => {
    for (const [text, key, value, after] of [
      [
        '{\n  // loud\n  "log": { "level": "lout" }\n}\n',
        'log.level',
        'debug',
        '{\n  // loud\n  "log": { "level": "debug" }\n}\n',
      ],
      ['{\n  "log": { "levl": "info" }\n}\n', 'log.levl', undefined, '{\n  "log": {  }\n}\n'],
      ['{ "log": 5 }\n', 'log', undefined, '{  }\n'],
      ['{ "log": 5 }\n', 'log', { level: 'warn' }, /"level": "warn"/],
      ['{ "nobody": { "owns": 1 } }\n', 'nobody', undefined, '{  }\n'],
    ] as const) {
      await daemon.save(text)
      await daemon.request('POST', '/api/settings/reload')
      const { status, body } = await patch(daemon, key, value)
      assert.is(status, 200, JSON.stringify([key, body]))
      const now = await daemon.text()
      if (typeof after === 'string') assert.is(now.replaceAll(/\{\s+\}/g, '{  }'), after)
      else assert.match(now, after)
    }
  }))

test('a corrected value takes effect, and the change is recorded with its author', () =>
  withDaemon('{ "attention": { "sound": false } }', async daemon => {
    await daemon.save('{ "attention": { "sound": 7 } }')
    await daemon.request('POST', '/api/settings/reload')
    const { body } = await patch(daemon, 'attention.sound', true)
    assert.equal(
      [body.applied, body.next_action, body.partial_failures],
      [true, 'none', undefined],
      JSON.stringify(body),
    )
    assert.is(await shown(daemon, 'attention.sound'), true)
    const [entry] = (await daemon.request('GET', '/api/settings/apply')).body.entries
    assert.equal([entry.keys, entry.status], [['attention.sound'], 'applied'])
    assert.is((await daemon.request('GET', '/api/settings/check')).body.valid, true)
  }))

test('each of several mistakes is corrected separately; remaining ones are reported', () =>
  withDaemon('', async daemon => {
    await daemon.save('{ "attention": { "sound": 7 }, "log": { "levl": 1 } }')
    await daemon.request('POST', '/api/settings/reload')
    const dry = await patch(daemon, 'attention.sound', true, { dry_run: true })
    assert.equal([dry.status, dry.body.skipped_reason], [200, 'dry_run'], JSON.stringify(dry.body))
    const first = await patch(daemon, 'attention.sound', true)
    assert.is(first.status, 200, JSON.stringify(first.body))
    assert.is(first.body.applied, false)
    assert.match(first.body.partial_failures[0].diagnostic.message, /config\.json:1: unknown key log\.levl/)
    assert.match(
      (await daemon.request('GET', '/api/settings/check')).body.problem,
      /config\.json:1: unknown key log\.levl/,
    )
    const second = await patch(daemon, 'log.levl')
    assert.equal([second.status, second.body.applied], [200, true], JSON.stringify(second.body))
    assert.is(await shown(daemon, 'attention.sound'), true)
  }))

test('a change that corrects nothing or replaces one invalid value by another is refused with the mistake', () =>
  withDaemon('', async daemon => {
    const text = '{ "attention": { "sound": 7 } }'
    await daemon.save(text)
    await daemon.request('POST', '/api/settings/reload')
    const other = await patch(daemon, 'log.level', 'debug')
    assert.equal([other.status, other.body.code], [409, 'config_file_invalid'])
    assert.match(other.body.error, /config\.json:1: attention\.sound/)
    assert.is(other.body.details.next, 'svc config unset attention.sound')
    const wrong = await patch(daemon, 'attention.sound', 'loud')
    assert.equal([wrong.status, wrong.body.code], [400, 'setting_invalid'])
    assert.is(await daemon.text(), text)
  }))

test('a file that does not parse is never written, and the refusal gives line, column and next step', () =>
  withDaemon('', async daemon => {
    const text = '{\n  "attention": { "sound": true,, }\n}\n'
    await daemon.save(text)
    await daemon.request('POST', '/api/settings/reload')
    for (const value of [true, undefined]) {
      const { status, body } = await patch(daemon, 'attention.sound', value)
      assert.equal([status, body.code], [409, 'config_file_invalid'])
      assert.match(body.error, /config\.json:2:\d+: not valid JSON/)
      assert.match(body.details.next, /correct line 2 of .*config\.json/)
    }
    assert.is(await daemon.text(), text)
  }))

const trust = async (daemon: Daemon, id: string) => {
  const { digest } = (await daemon.request('GET', `/api/workspaces/${id}/trust`)).body.trust
  assert.is((await daemon.request('PUT', `/api/workspaces/${id}/trust`, { digest })).status, 200)
}
const create = (daemon: Daemon, workspace: string) =>
  daemon.request('POST', '/api/sessions', { workspace, agent_name: 'does' })
const does = '---\nname: does\ncommand: "true"\n---\nYou do it.\n'

test('an invalid workspace configuration refuses its new sessions, and nothing else', () =>
  withDaemon('', async daemon => {
    const file = '.svc/config.json'
    const faulty = await daemon.workspace({
      [file]: '{\n  "skills": { "disabled": 5 }\n}\n',
      '.svc/agents/does/AGENT.md': does,
    })
    const sound = await daemon.workspace({ '.svc/agents/does/AGENT.md': does })
    assert.is((await create(daemon, faulty.id)).body.code === 'workspace_config_invalid', false, 'untrusted: no effect')
    for (const { id } of [faulty, sound]) await trust(daemon, id)
    const { status, body } = await create(daemon, faulty.id)
    assert.equal([status, body.code], [422, 'workspace_config_invalid'], JSON.stringify(body))
    assert.match(body.error, /\/\.svc\/config\.json:2: .*skills\.disabled/)
    assert.is(body.details.next, `edit ${path.join(faulty.root, file)}, line 2`)
    assert.is((await create(daemon, sound.id)).status, 201)
    assert.is((await daemon.request('GET', `/api/workspaces/${faulty.id}`)).status, 200)
    const { items } = (await daemon.request('GET', '/api/doctor?only=config.workspaces')).body
    assert.equal(
      items.map(({ id, code, severity }: Reply) => [id, code, severity]),
      [[`config:${faulty.id}`, 'workspace_config_invalid', 'error']],
    )

    const fixed = await patch(daemon, 'skills.disabled', undefined, {
      target: 'workspace-config',
      workspace_id: faulty.id,
    })
    assert.is(fixed.status, 200, JSON.stringify(fixed.body))
    assert.not.match(await readFile(path.join(faulty.root, file), 'utf8'), /disabled/)
    assert.is((await create(daemon, faulty.id)).status, 201, 'the correction keeps the trust')
  }))

test('a workspace configuration nested too deeply is refused as invalid', () =>
  withDaemon('', async daemon => {
    const deep = `{"mcp_servers":{"a":{"command":"x","args":${'['.repeat(50_000)}${']'.repeat(50_000)}}}}`
    const { id } = await daemon.workspace({ '.svc/config.json': deep, '.svc/agents/does/AGENT.md': does })
    await trust(daemon, id)
    const { status, body } = await create(daemon, id)
    assert.equal([status, body.code], [422, 'workspace_config_invalid'], JSON.stringify(body))
    assert.match(body.error, /nested too deeply/)
  }))

test('concurrent sessions in a workspace with a configuration are all created', () =>
  withDaemon('', async daemon => {
    const files = { '.svc/config.json': '{}', '.svc/agents/does/AGENT.md': does }
    const { id } = await daemon.workspace(files)
    await trust(daemon, id)
    const made = await Promise.all(Array.from({ length: 5 }, () => create(daemon, id)))
    assert.equal(
      made.map(({ status }) => status),
      [201, 201, 201, 201, 201],
      JSON.stringify(made.map(({ body }) => body.code)),
    )
  }))

test('a workspace configuration corrected by an editor refuses no more sessions', () =>
  withDaemon('', async daemon => {
    const { id, root } = await daemon.workspace({ '.svc/config.json': '{ broken', '.svc/agents/does/AGENT.md': does })
    await trust(daemon, id)
    const refused = await create(daemon, id)
    assert.is(refused.body.code, 'workspace_config_invalid', JSON.stringify(refused.body))
    assert.match(refused.body.error, /config\.json:1: not valid JSON/)
    await writeFile(path.join(root, '.svc/config.json'), '{}')
    await trust(daemon, id)
    assert.is((await create(daemon, id)).status, 201)
  }))

test.run()
