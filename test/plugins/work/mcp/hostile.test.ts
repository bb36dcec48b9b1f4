// timeout: 120s
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { eventually } from '../../../fixtures/session-world.js'
import { whileTimePasses } from '../../../harness/kernel.js'
import { HOSTILE, type McpScene, mcpScene } from './scene.js'

const hostile = (scene: McpScene, name: string, how: string) =>
  scene.put(name, { command: process.execPath, args: [HOSTILE, how, path.join(scene.home, `${name}.log`)] })
const starts = async (scene: McpScene, name: string) =>
  (await readFile(path.join(scene.home, `${name}.log`), 'utf8')).split('\n').filter(line => line === 'start').length
const known = (scene: McpScene, name: string) =>
  eventually(
    async () => (await scene.tools()).filter(({ descriptor }) => descriptor.owner === name).length > 0,
    `tools of ${name}`,
  )
const shown = async (scene: McpScene, name: string, query = '') =>
  (await scene.request('GET', `/api/settings/mcp-servers/${name}${query}`)).body.mcp_server

test('tools of an ended server are unavailable with the reason; it is restarted, and others are unaffected', async () => {
  const scene = await mcpScene()
  try {
    await hostile(scene, 'dies', 'plain')
    await hostile(scene, 'lives', 'plain')
    await known(scene, 'dies')
    await known(scene, 'lives')
    const call = (server: string, text: string) => scene.call(`mcp__${server}__good`, { text })
    assert.is((await call('dies', 'here')).text, 'here')
    const died = await call('dies', 'die')
    assert.equal([died.code, died.reasons], ['tool_unavailable', 'mcp_unreachable'], died.why)
    assert.is((await call('lives', 'here')).text, 'here')
    const offered = (await scene.tools()).find(({ descriptor }) => descriptor.owner === 'dies')
    if (offered?.unavailable) {
      assert.equal(offered.unavailable, ['mcp_unreachable'])
      assert.match(offered.why ?? '', 'it has ended; it said: a hostile server speaks')
    }
    await eventually(async () => (await call('dies', 'again')).text === 'again', 'the server that was started again')
    assert.is(await starts(scene, 'dies'), 2)
    assert.is(await starts(scene, 'lives'), 1)
  } finally {
    await scene.close()
  }
})

test('an ended server is restarted by a call of its tools', async () => {
  const scene = await mcpScene()
  try {
    await hostile(scene, 'dies', 'plain')
    await known(scene, 'dies')
    const invoke = async (text: string) => {
      const { status, body } = await scene.request('POST', '/api/tools/mcp__dies__good/invoke', { input: { text } })
      return status < 300 ? body.result.content[0].text : body.error.reason_codes?.join()
    }
    assert.is(await invoke('here'), 'here')
    assert.is(await invoke('die'), 'mcp_unreachable')
    await eventually(async () => (await invoke('again')) === 'again', 'the server that was started again')
    assert.is(await starts(scene, 'dies'), 2)
  } finally {
    await scene.close()
  }
})

test('a search waits for an unqueried server; a list does not', async () => {
  const clock = new VirtualClock()
  const scene = await mcpScene({ clock })
  try {
    await hostile(scene, 'late', 'late')
    const ids = ({ body }: { body: object }) => JSON.stringify(body)
    const found = scene.request('POST', '/api/tools/search', { query: 'told' })
    assert.not.match(ids(await whileTimePasses(clock, scene.request('GET', '/api/tools'))), 'mcp__late__good')
    await writeFile(path.join(scene.home, 'late.log.open'), '')
    assert.match(ids(await found), 'mcp__late__good')
  } finally {
    await whileTimePasses(clock, scene.close())
  }
})

test('an unused program is ended after ten minutes, its tools stay, and the next call starts it', async () => {
  const clock = new VirtualClock()
  const scene = await mcpScene({ clock })
  try {
    await hostile(scene, 'rests', 'plain')
    assert.is((await scene.call('mcp__rests__good', { text: 'one' })).text, 'one')
    const state = async () => (await shown(scene, 'rests')).runtime_status.state
    assert.is(await state(), 'ready')
    await clock.advance(9 * 60_000)
    assert.is((await scene.call('mcp__rests__good', { text: 'two' })).text, 'two')
    await clock.advance(9 * 60_000)
    assert.is(await state(), 'ready', 'a call counts')
    await clock.advance(60_000)
    assert.is(await state(), 'idle')
    assert.is((await scene.tools()).filter(({ descriptor }) => descriptor.owner === 'rests').length, 1)
    assert.is((await scene.call('mcp__rests__good', { text: 'three' })).text, 'three')
    assert.is(await starts(scene, 'rests'), 2)
  } finally {
    await whileTimePasses(clock, scene.close())
  }
})

test('a server that never starts is retried with back-off, however many requests come', async () => {
  const scene = await mcpScene()
  try {
    await hostile(scene, 'broken', 'exits')
    await scene.put('absent', { command: path.join(scene.home, 'no-such-program') })
    for (let at = 0; at < 200; at++) await scene.tools()
    await eventually(async () => (await shown(scene, 'broken')).runtime_status.state === 'failed', 'a failure')
    for (let at = 0; at < 200; at++) await scene.tools()
    assert.ok((await starts(scene, 'broken')) <= 5, `${await starts(scene, 'broken')} starts of 400 looks`)
    const { runtime_status: status } = await shown(scene, 'broken')
    assert.is(status.reason, 'mcp_unreachable')
    assert.match(status.diagnostic, 'a hostile server speaks')
    assert.match((await shown(scene, 'absent', '?probe=true')).runtime_status.diagnostic, 'no-such-program')
  } finally {
    await scene.close()
  }
})

test('a server that never answers blocks neither a list nor a search, and is abandoned', async () => {
  const clock = new VirtualClock()
  const scene = await mcpScene({ clock })
  try {
    await hostile(scene, 'lives', 'plain')
    await known(scene, 'lives')
    await hostile(scene, 'hangs', 'hangs')
    const search = scene.request('POST', '/api/tools/search', { query: 'told' })
    assert.match(JSON.stringify((await whileTimePasses(clock, search)).body), 'mcp__lives__good')
    const failed = async () => (await shown(scene, 'hangs')).runtime_status.state === 'failed'
    while (!(await failed())) await clock.advance(1000)
    assert.is((await shown(scene, 'hangs')).runtime_status.reason, 'mcp_unreachable')
    assert.is((await scene.call('mcp__lives__good', { text: 'here' })).text, 'here')
  } finally {
    await whileTimePasses(clock, scene.close())
  }
})

test('unusable tools are skipped and named, others stay; no server schema is compiled', async () => {
  const scene = await mcpScene()
  try {
    await hostile(scene, 'lies', 'lies')
    await known(scene, 'lies')
    const { tools, refused_tools: refused } = await shown(scene, 'lies')
    assert.equal(
      tools.map(({ id }: { id: string }) => id),
      ['mcp__lies__good', 'mcp__lies__bomb'],
    )
    for (const name of ['no_schema', '7', 'huge', 'mcp__lies__same_name', '__'])
      assert.ok(
        refused.some((text: string) => text.startsWith(name)),
        `${name}: ${refused}`,
      )
    const offered = (await scene.tools()).map(({ descriptor: { id }, unavailable = [] }) =>
      [id, ...unavailable].join(' '),
    )
    assert.is(offered.filter(text => text === 'mcp__lies__same_name').length, 2, 'the catalog names the conflict')
    assert.ok(offered.includes(`mcp__lies__${'long'.repeat(40)} id_too_long`), offered.join('\n'))
    assert.is((await scene.call('mcp__lies__bomb', { text: 'a'.repeat(40) })).text, 'a'.repeat(40))
  } finally {
    await scene.close()
  }
})

test('an answer of ten megabytes ends the server and not the daemon', async () => {
  const scene = await mcpScene()
  try {
    await hostile(scene, 'floods', 'floods')
    await known(scene, 'floods')
    const { code, why } = await scene.call('mcp__floods__good', { text: 'more' })
    assert.is(code, 'tool_unavailable', why)
    assert.match(why ?? '', '4194304 bytes')
  } finally {
    await scene.close()
  }
})

test('a server that does not read its input is killed, and its calls fail with that reason', async () => {
  const scene = await mcpScene()
  try {
    await hostile(scene, 'deaf', 'deaf')
    await known(scene, 'deaf')
    const text = 'x'.repeat(4 * 1024 * 1024)
    const calls = await Promise.all(Array.from({ length: 8 }, () => scene.call('mcp__deaf__good', { text })))
    for (const { code, why } of calls) {
      assert.is(code, 'tool_unavailable', why)
      assert.match(why ?? '', 'does not read its input')
    }
  } finally {
    await scene.close()
  }
})

test('a tool changed by its server is another tool, and its approved call is not made', async () => {
  const scene = await mcpScene()
  try {
    await hostile(scene, 'changes', 'changes')
    await known(scene, 'changes')
    const [before] = await scene.tools()
    assert.ok(before)
    assert.is((await scene.call('mcp__changes__good', { text: 'change' })).text, 'change')
    const changed = await eventually(
      async () => (await scene.tools()).find(({ descriptor }) => descriptor.digest !== before.descriptor.digest),
      'another digest',
    )
    assert.is(changed.descriptor.description, 'another tool by now')
    const by = { actor: scene.inside.actor, signal: new AbortController().signal }
    const refused = await scene.backend.call(before.descriptor, { text: 'hello' }, by).catch(error => error)
    assert.is(refused.details.reason_codes, 'runtime_descriptor_mismatch')
  } finally {
    await scene.close()
  }
})

test('a server with a running call is not removed, and the caller can cancel', async () => {
  const scene = await mcpScene()
  try {
    await hostile(scene, 'busy', 'plain')
    await known(scene, 'busy')
    const [tool] = await scene.tools()
    assert.ok(tool)
    const given = new AbortController()
    const by = { actor: scene.inside.actor, signal: given.signal }
    const waiting = scene.backend.call(tool.descriptor, { text: 'wait' }, by).catch(error => error.name)
    const removed = () => scene.request('DELETE', '/api/settings/mcp-servers/busy')
    const log = path.join(scene.home, 'busy.log')
    await eventually(async () => (await readFile(log, 'utf8')).includes('wait'), 'the call')
    const refused = await removed()
    assert.equal([refused.status, refused.body.code], [409, 'mcp_server_in_use'])
    given.abort()
    assert.is(await waiting, 'AbortError')
    assert.is((await removed()).status, 200)
  } finally {
    await scene.close()
  }
})

test.run()
