import { createHmac } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { NatsServer } from '../../../fixtures/nats-server.js'
import { freePort } from '../../../harness/free-port.js'
import { payloads } from './payloads.js'
import type { Scene } from './scene.js'

const WEBHOOK = fileURLToPath(new URL('../../../../dist/extensions/bridge-webhook', import.meta.url))
const HANDS = ['mouse', 'keyboard'] as const
type Hand = (typeof HANDS)[number]

export const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

interface Delivery {
  readonly text: string
  readonly isSigned: boolean
}

/** What the daemon of a scene talks to, and what the tests find in it. */
export interface Counterparts {
  /** Where a bridge sends its messages, and what arrived there. */
  readonly url: string
  readonly deliveries: readonly Delivery[]
  /** Addresses on which bridges may listen. */
  readonly listens: Readonly<Record<Hand, string>>
  /** Calls that wait for approval. */
  readonly approvals: Readonly<Record<Hand, string>>
  readonly nats: string
  /** A session in the channel `talk`. */
  readonly session: string
  close(): Promise<void>
}

/** Whether a request is signed as Standard Webhooks says. */
function isSigned(headers: Readonly<Record<string, unknown>>, body: string): boolean {
  const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64')
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  return headers['webhook-signature'] === `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
}

export async function openCounterparts({ at, api, workspace, session: openSession }: Scene): Promise<Counterparts> {
  const deliveries: Delivery[] = []
  const server: Server = createServer((request, reply) => {
    let body = ''
    request.on('data', part => {
      body += part
    })
    request.on('end', () => {
      deliveries.push({ text: JSON.parse(body).text, isSigned: isSigned(request.headers, body) })
      reply.end('{}')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const nats = await NatsServer.start()
  await api('POST', '/api/extensions', { path: WEBHOOK, allow_unverified: true })
  await api('PATCH', '/api/settings/keys', { changes: [{ key: 'tools.policy.approval_timeout', value: '1h' }] })
  const caller = await openSession({ name: 'Caller' })
  const approvals: Record<string, string> = {}
  const listens: Record<string, string> = {}
  for (const hand of HANDS) {
    approvals[hand] = await waitingCall(at, workspace, caller, `nobody-by-${hand}`)
    listens[hand] = `127.0.0.1:${await freePort()}`
    const kit = path.join(at.folder, `kit-${hand}`)
    mkdirSync(kit, { recursive: true })
    const manifest = (version: string, more: string) =>
      writeFileSync(
        path.join(kit, 'extension.toml'),
        `name = "kit-${hand}"\nversion = "${version}"\nrequires_env = ["KIT_TOKEN"]\n${more}`,
      )
    manifest('1.0.0', '')
    await api('POST', '/api/extensions', { path: kit, allow_unverified: true })
    const hook = { name: 'ready', event: 'session.post_create', mode: 'async', command: 'true' }
    const lines = Object.entries(hook).map(([name, value]) => `${name} = "${value}"\n`)
    manifest('2.0.0', `[[resources.hooks]]\n${lines.join('')}`)
  }
  const { channel } = await api<{ channel: { sessions: { id: string }[] } }>(
    'POST',
    `/api/workspaces/${workspace}/network/channels`,
    { channel: 'talk', agent_names: ['echo'] },
  )
  return {
    ...{ deliveries, nats: nats.url, session: channel.sessions[0]?.id ?? '' },
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in`,
    listens: listens as Record<Hand, string>,
    approvals: approvals as Record<Hand, string>,
    async close() {
      server.close()
      server.closeAllConnections()
      await nats.close()
    },
  }
}

/** A call of a session that needs approval: the id of its request. */
export async function waitingCall(at: Scene['at'], workspace: string, session: string, name: string): Promise<string> {
  const body = { input: { name }, session_id: session, workspace_id: workspace }
  const { status, text } = await at.request('socket', 'POST', '/api/tools/service__agent_delete/invoke', body)
  if (status !== 202) throw new Error(`the call is answered with ${status}: ${text}`)
  return JSON.parse(text).error.details.approval_id
}

/** An extension whose settings and secrets are described by markup. */
export function hostileAdapter(at: Scene['at']): string {
  const folder = path.join(at.folder, 'hostile')
  mkdirSync(folder, { recursive: true })
  const texts = payloads.filter(payload => !/\p{Cc}/u.test(payload)).slice(0, 30)
  const kinds = [
    { type: 'string' },
    { type: 'integer' },
    { type: 'boolean' },
    { type: 'array', items: { type: 'string' } },
    { type: 'string', enum: texts.slice(0, 3), default: texts[0] },
    {},
  ]
  const properties = Object.fromEntries(
    texts.map((text, n) => [`member_${n}`, { ...kinds[n % kinds.length], title: text, description: text }]),
  )
  writeFileSync(
    path.join(folder, 'config.schema.json'),
    `{"type":"object","properties":${JSON.stringify(properties).replace('{', '{"__proto__":{"type":"string"},')}}`,
  )
  const [text = ''] = texts
  const manifest = [
    ...['name = "hostile"', 'version = "1.0.0"', '[capabilities]', 'provides = ["bridge.adapter"]'],
    ...['[permissions]', 'requires = ["bridges/instances/report_state", "bridges/messages/ingest"]'],
    ...['[subprocess]', 'command = "node"', 'args = ["main.mjs"]'],
    ...['[bridge]', 'platform = "hostile"', `display_name = ${JSON.stringify(text)}`],
    ...['config_schema = "config.schema.json"', '[[bridge.secret_slots]]', 'name = "token"'],
    ...[`description = ${JSON.stringify(text)}`, 'required = true'],
  ]
  writeFileSync(path.join(folder, 'extension.toml'), `${manifest.join('\n')}\n`)
  writeFileSync(path.join(folder, 'main.mjs'), '')
  return folder
}
