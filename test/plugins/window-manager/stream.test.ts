import http from 'node:http'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type ServerEvent, SseParser } from '../../../client/sse.js'
import { validateReply } from '../../harness/contract.js'
import { scene } from './scene.js'

const svc = await scene({ listen: ['socket'] })
const { base, command, host } = svc

/** Reads a stream; `until` resolves with what came, as `event 3`, when there is so much. */
function read(url: string, headers: http.OutgoingHttpHeaders = {}) {
  const frames: ServerEvent[] = []
  const parser = new SseParser()
  const request = http.get({ socketPath: path.join(host.home, 'daemon.sock'), path: url, headers }, response => {
    response.setEncoding('utf8')
    response.on('data', (text: string) => frames.push(...parser.push(text)))
    response.on('error', () => {})
  })
  request.on('error', () => {})
  const until = async (count: number) => {
    while (frames.length < count) await new Promise(resolve => setTimeout(resolve, 5))
    for (const { data } of frames) assert.equal(validateReply('GET', url, 101, data), [])
    return frames.map(({ event, id }) => `${event} ${id ?? ''}`.trim())
  }
  return { frames, until, close: () => request.destroy() }
}

test('a reader gets a snapshot, then every command once; one that comes back gets what it missed', async () => {
  const id = await svc.workspace('streamed')
  const url = `${base(id)}/stream`
  const first = read(url)
  assert.equal(await first.until(1), ['snapshot 0'])
  await command(id, 'window.open', { id: 'a', app: 'mail' })
  await command(id, 'window.open', { id: 'b', app: 'mail' }, { origin: 'a test' })
  assert.equal(await first.until(3), ['snapshot 0', 'event 1', 'event 2'])
  const { event } = (first.frames[2] as ServerEvent).data as { event: { command_id: string; origin: string } }
  assert.equal([event.command_id, event.origin], ['window.open', 'a test'])
  first.close()
  await command(id, 'window.close', { window_id: 'a' })
  const resumed = read(url, { 'last-event-id': '1' })
  assert.equal(await resumed.until(2), ['event 2', 'event 3'])
  const known = read(`${url}?after_revision=3`)
  const ahead = read(`${url}?after_revision=99`)
  assert.equal(await ahead.until(1), ['snapshot 3'], 'a revision that never was')
  await command(id, 'layout.undo')
  assert.equal(await known.until(1), ['event 4'])
  for (const reader of [resumed, known, ahead]) reader.close()
})

test('a client is told of its own desktop and focus, and does not expire while it reads', async () => {
  const id = await svc.workspace('attached')
  await command(id, 'desktop.create', { id: 'second' })
  const { body } = await host.request('POST', `${base(id)}/clients`, { client_id: 'screen' })
  assert.is(body.client_id, 'screen')
  const reader = read(`${base(id)}/stream?client_id=screen&after_revision=1`)
  assert.equal(await reader.until(1), ['client 1'])
  await command(id, 'desktop.switch', { desktop_id: 'second' }, { client_id: 'screen' })
  assert.equal(await reader.until(2), ['client 1', 'client 1'])
  reader.close()
  const stranger = await host.request('GET', `${base(id)}/stream?client_id=stranger`)
  assert.equal([stranger.status, stranger.body.code], [404, 'window_manager_client_not_found'])
})

test('the stream of a workspace that is deleted says so and ends', async () => {
  const id = await svc.workspace('doomed')
  const reader = read(`${base(id)}/stream`)
  await reader.until(1)
  await host.request('DELETE', `/api/workspaces/${id}`)
  assert.equal(await reader.until(2), ['snapshot 0', 'error'])
  const { error } = (reader.frames[1] as ServerEvent).data as { error: { code: string } }
  assert.is(error.code, 'window_manager_workspace_not_found')
})

test.after(() => svc.end())
test.run()
