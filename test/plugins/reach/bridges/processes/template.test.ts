// timeout: 120s
import { connect } from 'node:net'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { writeExtension } from '../../../../../plugins/delivery/extensions/authoring/init.js'
import { bridges, extensions, tools, vault } from '../../../../../plugins/index.js'
import { eventually, openWorld, type World } from '../../../../fixtures/session-world.js'
import { freePort } from '../../../../harness/free-port.js'

/** Somebody at the chat: says lines, and hears what the bot says. */
async function person(port: number, name: string) {
  const socket = connect(port, '127.0.0.1')
  let heard = ''
  socket.setEncoding('utf8').on('data', text => {
    heard += text
  })
  socket.write(`${name}\n`)
  const hears = (words: string) => eventually(async () => heard.includes(words), `${words} in ${JSON.stringify(heard)}`)
  await hears(`Hello, ${name}.`)
  return { say: (text: string) => socket.write(`${text}\n`), hears, leave: () => socket.destroy() }
}

async function converses(world: World, language: 'ts' | 'python'): Promise<void> {
  const name = `lines-${language}`
  const ask = (method: string, url: string, body?: unknown) => world.kernel.request(method, url, body)
  await writeExtension(path.join(world.home, 'extensions', name), 'bridge', name, language)
  await eventually(
    async () => (await ask('GET', `/api/extensions/${name}`)).body.extension?.state === 'registered',
    'the extension',
  )
  const port = await freePort()
  const created = await ask('POST', '/api/bridges', {
    ...{ display_name: 'Lines', platform: 'lines', extension_name: name, scope: 'workspace' },
    ...{ workspace_id: world.workspaceId, enabled: true, dm_policy: 'open' },
    routing_policy: { include_peer: true, include_group: false, include_thread: false },
    provider_config: { port },
  })
  assert.is(created.status, 201, JSON.stringify(created.body))
  const { id } = created.body.bridge
  const status = async () => (await ask('GET', `/api/bridges/${id}`)).body.bridge.status
  await eventually(async () => (await status()) === 'ready', 'the bridge')

  const ada = await person(port, 'ada')
  ada.say('say good morning')
  await ada.hears('good morning')
  // Another person has a conversation of their own, and the agent of each goes on.
  const bob = await person(port, 'bob')
  bob.say('say good evening')
  await bob.hears('good evening')
  ada.say('say still here')
  await ada.hears('still here')
  const { sessions } = (await ask('GET', '/api/sessions')).body
  assert.ok(sessions.length >= 2)
  ada.leave()
  bob.leave()
  assert.is((await ask('POST', `/api/bridges/${id}/disable`)).status, 200)
  await eventually(
    async () => (await ask('GET', `/api/extensions/${name}`)).body.extension.state === 'registered',
    'the end of the process',
  )
}

test('the adapter template of init, in TypeScript and in Python, answers users in a chat', async () => {
  const world = await openWorld({
    plugins: [vault, tools, extensions, bridges],
    config: { defaults: { agent: 'ada' } },
  })
  try {
    await world.agent('ada', { permissions: 'approve-all' })
    await converses(world, 'ts')
    await converses(world, 'python')
  } finally {
    await world.close()
  }
})

test.run()
