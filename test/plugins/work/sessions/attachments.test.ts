import { existsSync, readdirSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { agentText, eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import type { Reply } from '../../../harness/kernel.js'

let world: World

test.before(async () => {
  world = await openWorld({ listen: ['socket'] })
  await world.agent('plain')
  await world.agent('sees', { flags: '--image' })
})
test.after(() => world.close())

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAYAAACddGYaAAAAC0lEQVR42mNgQAcAABIAAXUYKOMAAAAASUVORK5CYII=',
  'base64',
)
const TYPE = { 'content-type': 'multipart/form-data; boundary=xYz' }

function form(filename: string, type: string, bytes: Uint8Array, end = '\r\n--xYz--\r\n'): Buffer {
  const head = `--xYz\r\nContent-Disposition: form-data; name="file"; filename="${filename}"\r\nContent-Type: ${type}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), bytes, Buffer.from(end)])
}

async function upload(at: string, body: Uint8Array, headers: Record<string, string> = TYPE) {
  const reply = await world.kernel.kernel.inject({ method: 'POST', url: `${at}/attachments`, headers, body })
  return { status: reply.status, body: JSON.parse(reply.body) as Reply }
}

const refusal = async (at: string, body: Uint8Array, headers?: Record<string, string>) => {
  const reply = await upload(at, body, headers)
  return [reply.status, reply.body.code]
}
const folder = (at: string) => path.join(world.home, 'sessions', at.split('/').at(-1) ?? '', 'attachments')
const files = (at: string) => (existsSync(folder(at)) ? readdirSync(folder(at)) : [])

test('a file is stored unchanged and returned', async () => {
  const { at } = await world.session('plain')
  const { status, body } = await upload(at, form('../../etc/Bild ä.png', 'image/png', PNG))
  assert.is(status, 201, JSON.stringify(body))
  const { attachment } = body
  assert.equal([attachment.name, attachment.kind, attachment.mime_type], ['Bild ä.png', 'image', 'image/png'])
  assert.equal([attachment.bytes, attachment.width, attachment.height], [PNG.length, 3, 2])
  assert.equal(files(at), [attachment.id], 'under its id')
  const got = await new Promise<Reply>((resolve, reject) => {
    const url = `${at}/attachments/${attachment.id}/bytes`
    httpRequest({ socketPath: path.join(world.home, 'daemon.sock'), path: url }, response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ headers: response.headers, bytes: Buffer.concat(chunks) }))
    })
      .on('error', reject)
      .end()
  })
  assert.ok(PNG.equals(got.bytes))
  assert.equal([got.headers['content-type'], got.headers['x-content-type-options']], ['image/png', 'nosniff'])
  assert.match(got.headers['content-disposition'], /^attachment; filename\*=UTF-8''Bild%20%C3%A4\.png$/)
  const other = await world.session('plain')
  const foreign = `${other.at}/attachments/${attachment.id}`
  assert.is((await world.kernel.request('GET', `${foreign}/bytes`)).status, 404, 'it belongs to one session')
  assert.is((await world.kernel.request('DELETE', foreign)).status, 404)
  assert.is((await world.kernel.request('DELETE', `${at}/attachments/${attachment.id}`)).status, 204)
  assert.equal(files(at), [])
  assert.is((await world.kernel.request('DELETE', `${at}/attachments/..%2f..%2fmeta.json`)).status, 404)
})

test('a mislabelled, truncated or oversized file leaves nothing behind', async () => {
  const { at } = await world.session('plain')
  const html = Buffer.from('<script>alert(1)</script>')
  assert.equal(await refusal(at, form('a.png', 'image/png', html)), [415, 'attachment_type'])
  assert.equal(await refusal(at, form('a.svg', 'image/svg+xml', html)), [415, 'attachment_type'])
  assert.equal(await refusal(at, form('a.txt', 'text/plain', Buffer.from([0xff, 0xfe, 0x41]))), [
    415,
    'attachment_type',
  ])
  assert.equal(await refusal(at, form('a.txt', 'text/plain', Buffer.from('a\0b'))), [415, 'attachment_type'])
  assert.equal(await refusal(at, form('', 'text/plain', html)), [400, 'attachment_invalid'])
  assert.equal(await refusal(at, form('a\u0007b', 'text/plain', html)), [400, 'attachment_invalid'])
  assert.equal(await refusal(at, form('..', 'text/plain', html)), [400, 'attachment_invalid'])
  assert.equal(await refusal(at, form('a.txt', 'text/plain', Buffer.alloc(0))), [400, 'attachment_invalid'])
  assert.equal(await refusal(at, form('a.txt', 'text/plain', html, '')), [400, 'attachment_invalid'], 'no end')
  assert.equal(await refusal(at, Buffer.from('--xYz--\r\n')), [400, 'attachment_invalid'], 'no part')
  const two = Buffer.concat([form('a.txt', 'text/plain', html, '\r\n'), form('b.txt', 'text/plain', html)])
  assert.equal(await refusal(at, two), [400, 'attachment_invalid'])
  assert.equal(await refusal(at, Buffer.from(`--xYz\r\nX: ${'y'.repeat(9000)}`)), [400, 'attachment_invalid'])
  assert.equal(await refusal(at, html, { 'content-type': 'multipart/form-data' }), [400, 'attachment_invalid'])
  assert.is((await refusal(at, html, { 'content-type': 'image/png' }))[0], 415)
  const huge = Buffer.alloc(20 * 1024 * 1024 + 1, 'a')
  assert.equal(await refusal(at, form('a.txt', 'text/plain', huge)), [413, 'attachment_too_large'])
  assert.equal(await refusal(at, form('a.txt', 'text/plain', Buffer.concat([huge, huge]))), [413, 'payload_too_large'])
  assert.equal(files(at), [])
})

test('a request with fewer bytes than announced leaves nothing behind', async () => {
  const { at } = await world.session('plain')
  const body = form('a.txt', 'text/plain', Buffer.from('x'.repeat(100_000)), '')
  const sent = httpRequest({
    socketPath: path.join(world.home, 'daemon.sock'),
    method: 'POST',
    path: `${at}/attachments`,
    headers: { ...TYPE, 'content-length': String(body.length + 1000) },
  })
  sent.on('error', () => {})
  sent.write(body)
  await eventually(async () => files(at).length === 1, 'the beginning of the file')
  sent.destroy()
  await eventually(async () => files(at).length === 0, 'its end')
  assert.equal(files(at), [])
})

test('files are attached to a prompt as far as the agent supports them', async () => {
  const sees = await world.session('sees')
  const image = (await upload(sees.at, form('a.png', 'image/png', PNG))).body.attachment.id
  const text = (await upload(sees.at, form('a.txt', 'text/plain', Buffer.from('inside of it')))).body.attachment.id
  const prompt = async (at: string, attachments: string[]) => {
    const reply = await world.kernel.request('POST', `${at}/prompt`, { text: 'blocks', attachments })
    if (reply.status >= 300) return reply.body.code
    const turn = reply.body.prompt.new_turn_id
    await world.until(at, event => event.turn_id === turn && event.type === 'done')
    return world.events(at, `?turn_id=${turn}`)
  }
  const events = await prompt(sees.at, [image, text])
  assert.match(agentText(events), /image\/png:\d+, text, text$/m)
  assert.match(agentText(events), /^text, /)
  assert.equal(
    events[0].content.attachments.map((one: Reply) => one.name),
    ['a.png', 'a.txt'],
  )
  const blind = await world.session('plain')
  assert.is(await prompt(blind.at, [image]), 'attachment_not_found', 'of another session')
  const own = (await upload(blind.at, form('a.png', 'image/png', PNG))).body.attachment.id
  const told = await prompt(blind.at, [own])
  assert.match(JSON.stringify(told), /a\.png: this agent does not accept image\/png/)
  assert.is(
    await prompt(
      blind.at,
      Array.from({ length: 11 }, () => own),
    ),
    'invalid_request',
  )
  await world.kernel.request('DELETE', blind.at)
  assert.not(existsSync(folder(blind.at)))
})

test.run()
