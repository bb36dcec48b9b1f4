import { once } from 'node:events'
import net from 'node:net'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ApiError, ConnectionError, createClient, type Operations } from '../../../../client/index.js'
import windowManager from '../../../../plugins/desk/window-manager/index.js'
import { Live } from '../../../../plugins/desk/window-manager/live/live.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'
import { validateReply } from '../../../harness/contract.js'
import { whileTimePasses } from '../../../harness/kernel.js'
import { scene } from './scene.js'

type Message = Operations['getWorkspacesByWorkspaceIdWindowManagerStream']['socket']
type Query = Operations['getWorkspacesByWorkspaceIdWindowManagerStream']['input']['query']

const clock = new VirtualClock()
const svc = await scene({ listen: ['socket'], clock })
const { base, command, host } = svc
const socketPath = path.join(host.home, 'daemon.sock')

/** Turns of the loop in which a ping reaches its reader and the answer comes back: both ends are in this process. */
async function answered(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate)
}

const streams = () => host.kernel.host.streams()['window-manager'] ?? 0

/** Reads the channel of a workspace; `until` resolves with what came, as `event 3`, when there is so much. */
function read(id: string, query: Query = {}) {
  const messages: Message[] = []
  const abort = new AbortController()
  const channel = createClient({ socket: socketPath }).getWorkspacesByWorkspaceIdWindowManagerStream({
    path: { workspace_id: id },
    query,
    signal: abort.signal,
  })
  const over = (async () => {
    for await (const message of channel) messages.push(message)
  })().then(
    () => 'done',
    error => error,
  )
  const until = async (count: number) => {
    while (messages.length < count) await new Promise(resolve => setTimeout(resolve, 5))
    for (const message of messages) assert.equal(validateReply('GET', `${base(id)}/stream`, 101, message), [])
    return messages.map(message => `${message.type} ${'revision' in message ? message.revision : message.error.code}`)
  }
  return { messages, until, over, close: () => abort.abort('enough') }
}

test('a reader gets a snapshot, then every command once; a returning reader gets the missed ones', async () => {
  const id = await svc.workspace('streamed')
  const first = read(id)
  assert.equal(await first.until(1), ['snapshot 0'])
  await command(id, 'window.open', { id: 'a', app: 'mail' })
  await command(id, 'window.open', { id: 'b', app: 'mail' }, { origin: 'a test' })
  assert.equal(await first.until(3), ['snapshot 0', 'event 1', 'event 2'])
  const [, , last] = first.messages
  assert.equal(last?.type === 'event' && [last.event.command_id, last.event.origin], ['window.open', 'a test'])
  first.close()
  assert.is(await first.over, 'enough')
  await command(id, 'window.close', { window_id: 'a' })
  const resumed = read(id, { after_revision: 1 })
  assert.equal(await resumed.until(2), ['event 2', 'event 3'])
  const known = read(id, { after_revision: 3 })
  const ahead = read(id, { after_revision: 99 })
  assert.equal(await ahead.until(1), ['snapshot 3'], 'a revision that never was')
  await command(id, 'layout.undo')
  assert.equal(await known.until(1), ['event 4'])
  for (const reader of [resumed, known, ahead]) reader.close()
})

test('a client gets its own desktop and focus, and does not expire while it reads', async () => {
  const id = await svc.workspace('attached')
  await command(id, 'desktop.create', { id: 'second' })
  const { body } = await host.request('POST', `${base(id)}/clients`, { client_id: 'screen' })
  assert.is(body.client_id, 'screen')
  const reader = read(id, { client_id: 'screen', after_revision: 1 })
  assert.equal(await reader.until(1), ['client 1'])
  await command(id, 'desktop.switch', { desktop_id: 'second' }, { client_id: 'screen' })
  assert.equal(await reader.until(2), ['client 1', 'client 1'])
  for (let minute = 0; minute < 6; minute++) {
    for (let beat = 0; beat < 4; beat++) {
      await clock.advance(15_000)
      await answered()
    }
  }
  const clients = async () => (await host.request('GET', `${base(id)}/clients`)).body.clients.length
  assert.is(await clients(), 1)
  reader.close()
  await reader.over
  while (streams() > 0) await new Promise(setImmediate)
  await clock.advance(6 * 60_000)
  assert.is(await clients(), 0)
})

test('an unreadable channel is refused before the upgrade', async () => {
  const id = await svc.workspace('refused')
  const stranger = (await read(id, { client_id: 'stranger' }).over) as ApiError
  assert.instance(stranger, ApiError)
  assert.equal([stranger.status, stranger.code], [404, 'window_manager_client_not_found'])
  assert.equal((stranger.body as { workspace_id: string }).workspace_id, id)
  const nowhere = (await read('nowhere').over) as ApiError
  assert.equal([nowhere.status, nowhere.code], [404, 'window_manager_workspace_not_found'])
  const wrong = (await read(id, { after_revision: -1 }).over) as ApiError
  assert.equal([wrong.status, wrong.code], [400, 'invalid_query'])
  const plain = await host.request('GET', `${base(id)}/stream`)
  assert.equal([plain.status, plain.body.code], [426, 'upgrade_required'])
  const nobody = createClient({ socket: path.join(host.home, 'none') })
  const unreachable = await nobody
    .getWorkspacesByWorkspaceIdWindowManagerStream({ path: { workspace_id: id } })
    .next()
    .catch(error => error)
  assert.instance(unreachable, ConnectionError)
  assert.is(unreachable.code, 'unreachable')
})

test('the channel of a deleted workspace reports the deletion and ends', async () => {
  const id = await svc.workspace('doomed')
  const reader = read(id)
  await reader.until(1)
  await host.request('DELETE', `/api/workspaces/${id}`)
  assert.equal(await reader.until(2), ['snapshot 0', 'error window_manager_workspace_not_found'])
  assert.is(await reader.over, 'done')
})

test('a slow consumer is disconnected, and other readers are not', async () => {
  const id = await svc.workspace('slow')
  // More than the system takes in a reader's place.
  const route = { pathname: '/', search: { text: 'x'.repeat(400_000) } }
  await command(id, 'window.open', { id: 'a', app: 'mail', route })
  const key = 'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  const head = 'host: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n'
  const lazy = net.connect(socketPath)
  lazy.pause()
  lazy.write(`GET ${base(id)}/stream HTTP/1.1\r\n${head}${key}\r\n`)
  const reader = read(id, { after_revision: 1 })
  while (streams() < 2) await new Promise(setImmediate)
  await clock.advance(15_000)
  await answered()
  await clock.advance(15_000)
  while (streams() > 1) await new Promise(setImmediate)
  const got: Buffer[] = []
  lazy.on('data', data => got.push(data))
  lazy.resume()
  await once(lazy, 'end')
  lazy.destroy()
  const text = Buffer.concat(got).toString('latin1')
  const last = JSON.parse(/\{"type":"error".*?\}\}/.exec(text.slice(-400))?.[0] ?? '{}')
  assert.equal([last.error?.code, last.error?.workspace_id], ['window_manager_slow_consumer', id])
  assert.equal(validateReply('GET', `${base(id)}/stream`, 101, last), [])
  await command(id, 'window.open', { id: 'b', app: 'mail' })
  assert.equal(await reader.until(1), ['event 2'])
  reader.close()
})

test('a reload of the window manager closes its channels, and a reader resumes after its position', async () => {
  const id = await svc.workspace('reloaded')
  const reader = read(id)
  await reader.until(1)
  const { host: plugins } = host.kernel
  await whileTimePasses(clock, plugins.reload(windowManager))
  const cut = (await reader.over) as ConnectionError
  assert.instance(cut, ConnectionError)
  assert.equal([cut.code, /1012/.test(cut.message)], ['stream_cut', true])
  const again = read(id, { after_revision: 0 })
  while (streams() === 0) await new Promise(setImmediate)
  await command(id, 'window.open', { id: 'a', app: 'mail' })
  assert.equal(await again.until(1), ['event 1'])
  again.close()
})

test('the backlog for readers is bounded per workspace and in total', async () => {
  const live = new Live()
  const event = (workspace_id: string, revision: number) =>
    live.publish({ actor: {}, changes: {}, command_id: 'window.open', occurred_at: '', revision, workspace_id })
  for (let revision = 1; revision <= 300; revision++) event('busy', revision)
  assert.equal([live.between('busy', 43, 300), live.between('busy', 44, 300)?.length], [undefined, 256])
  let woken = false
  const next = live.next('busy').then(() => {
    woken = true
  })
  for (let i = 1; i < 64; i++) event(`w${i}`, 1)
  assert.equal([live.latest('busy'), woken], [300, false])
  event('busy', 301)
  await next
  for (let i = 64; i < 66; i++) event(`w${i}`, 1)
  assert.equal([live.latest('w1'), live.latest('w3'), live.latest('busy')], [undefined, 1, 301])
})

test.after(() => svc.end())
test.run()
