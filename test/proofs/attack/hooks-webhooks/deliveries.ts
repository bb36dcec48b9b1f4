import { createHmac } from 'node:crypto'
import { type IncomingMessage, request } from 'node:http'
import { type Answer, type Json, type Scene, type Strike, trigger } from './scene.js'

const SECRET = 'the secret of an attack'
/** Deliveries that one webhook is sent before another takes its place: it takes 60 at once. */
const PER_WEBHOOK = 20

const sign = (body: string, at: number, secret = SECRET) => ({
  'x-service-webhook-timestamp': String(at),
  'x-service-webhook-signature': `sha256=${createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')}`,
})
const seconds = (from = 0) => Math.floor(Date.now() / 1000) + from

/** What an answer has to be, `[status, code]`. */
function expecting(answer: Answer, status: number, code: string): string | undefined {
  return answer.status === status && answer.code === code
    ? undefined
    : `${answer.status} ${answer.code} in place of ${status} ${code}: ${answer.text.slice(0, 200)}`
}

const hookBody = { event: 'webhook', endpoint_slug: 'ci', webhook_secret_value: SECRET }

/** The webhook that is struck next. */
async function webhookOf(scene: Scene): Promise<Json> {
  if (!scene.webhook || ++scene.sent > PER_WEBHOOK) {
    scene.webhook = await trigger(scene, hookBody)
    scene.sent = 0
  }
  return scene.webhook
}

function post(
  { port }: Scene,
  url: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length = { 'content-length': String(Buffer.byteLength(body)) }
    const sent = request(
      {
        ...{ host: '127.0.0.1', port, path: url, method: 'POST', agent: false },
        headers: { 'content-type': 'application/json', ...length, ...headers },
      },
      (response: IncomingMessage) => {
        const chunks: Buffer[] = []
        response
          .on('data', chunk => chunks.push(chunk))
          .on('end', () => {
            const text = Buffer.concat(chunks).toString()
            resolve({ status: response.statusCode ?? 0, text, code: codeOf(text) })
          })
        response.on('error', reject)
      },
    )
    sent.on('error', error => resolve({ status: 0, text: String(error), code: 'connection' }))
    if (headers['content-length'] === undefined) sent.end(body)
    else sent.write(body, () => sent.destroy())
  })
}

function codeOf(text: string): string {
  try {
    return JSON.parse(text).code ?? ''
  } catch {
    return ''
  }
}

/** A delivery that is taken counts. */
function took(scene: Scene, id: string, answers: readonly Answer[]): void {
  const more = answers.filter(({ status }) => status === 200).length
  scene.taken.set(id, (scene.taken.get(id) ?? 0) + more)
}

/** What says when a delivery came is left out; everything else of a reply has to be the same. */
const withoutIds = (text: string) => text.replace(/"(?:request_id|id)":"[^"]*"/g, '')

/** On webhooks. */
export const deliveries: Readonly<Record<string, Strike>> = {
  'a wrong signature': async scene => {
    const { webhook_endpoint: url } = await webhookOf(scene)
    const body = `{"n":${scene.random.int(1e9)}}`
    const headers = sign(body, seconds(), scene.random.of(['another', '', SECRET.slice(1)]) || 'x')
    return expecting(await post(scene, url, body, headers), 401, 'webhook_signature_invalid')
  },
  'a body that was changed': async scene => {
    const { webhook_endpoint: url } = await webhookOf(scene)
    return expecting(await post(scene, url, '{"a":2}', sign('{"a":1}', seconds())), 401, 'webhook_signature_invalid')
  },
  'a stale timestamp': async scene => {
    const { webhook_endpoint: url } = await webhookOf(scene)
    const at = seconds(scene.random.of([-1, 1]) * (310 + scene.random.int(1e6)))
    return expecting(await post(scene, url, '{}', sign('{}', at)), 401, 'webhook_stale')
  },
  'headers that are none': async scene => {
    const { webhook_endpoint: url } = await webhookOf(scene)
    const right = sign('{}', seconds())
    const headers = scene.random.of<Record<string, string>>([
      {},
      { 'x-service-webhook-timestamp': right['x-service-webhook-timestamp'] },
      { ...right, 'x-service-webhook-timestamp': scene.random.of(['now', '1e99', '-1', 'NaN']) },
      { ...right, 'x-service-webhook-delivery-id': 'x'.repeat(300 + scene.random.int(3000)) },
    ])
    const answer = await post(scene, url, '{}', headers)
    return [400, 401].includes(answer.status) ? undefined : expecting(answer, 400, 'webhook_headers_invalid')
  },
  'a delivery that is sent many times at once': async scene => {
    const { webhook_endpoint: url, id } = await webhookOf(scene)
    const body = `{"n":${scene.random.int(1e9)}}`
    const headers = sign(body, seconds())
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        post(scene, url, body, { ...headers, 'x-service-webhook-delivery-id': scene.random.of(['same', `d${n}`]) }),
      ),
    )
    took(scene, id, answers)
    const good = answers.filter(({ status }) => status === 200).length
    const refused = answers.filter(({ code }) => code === 'webhook_replayed').length
    const limited = answers.filter(({ code }) => code === 'webhook_rate_limit').length
    return good <= 1 && good + refused + limited === 8 && (good === 1 || limited > 0)
      ? undefined
      : `of 8 the same ${good} were taken, ${refused} refused: ${answers.map(({ status, code }) => `${status} ${code}`)}`
  },
  'a body that is too large': async scene => {
    const { webhook_endpoint: url } = await webhookOf(scene)
    const body = Buffer.alloc(1024 * 1024 + 1 + scene.random.int(4 * 1024 * 1024), 'x')
    const answer = await post(scene, url, body, sign('{}', seconds()))
    // It may close the connection on whoever goes on sending.
    return answer.status === 0 ? undefined : expecting(answer, 413, 'payload_too_large')
  },
  'a body that ends too soon': async scene => {
    const { webhook_endpoint: url } = await webhookOf(scene)
    const body = '{"cut":true}'
    const answer = await post(scene, url, body, { ...sign(body, seconds()), 'content-length': '4000' })
    return answer.status === 0 ? undefined : `it was answered: ${answer.status}`
  },
  'endpoints that are not there': async scene => {
    const { webhook_id: id, webhook_endpoint: right } = await webhookOf(scene)
    const off = await trigger(scene, { ...hookBody, enabled: false })
    const body = '{}'
    const headers = scene.random() < 0.5 ? sign(body, seconds()) : {}
    const urls = [
      off.webhook_endpoint,
      right.replace('/ci--', '/other--'),
      right.replace(/workspaces\/[^/]+/, 'workspaces/ws_00000000000000ff'),
      `/api/webhooks/global/ci--${id}`,
      `/api/webhooks/global/${id}`,
      `/api/webhooks/global/nothing--wbh_${scene.random.int(1e9)}`,
      right.slice(0, -1),
    ]
    const answers = await Promise.all(urls.map(url => post(scene, url, body, headers)))
    const texts = new Set(answers.map(({ status, text }) => `${status} ${withoutIds(text)}`))
    return texts.size === 1 && answers[0]?.status === 404 ? undefined : `answers differ: ${[...texts].join(' | ')}`
  },
  'more than a webhook takes': async scene => {
    // Both as one that is there and as one that is not: a flood must not tell which.
    const { webhook_endpoint: there } = await trigger(scene, hookBody)
    const url = scene.random.of([there, `/api/webhooks/global/ci--wbh_${scene.random.int(1e9)}`])
    const answers: Answer[] = []
    for (let n = 0; n < 12; n++)
      answers.push(...(await Promise.all(Array.from({ length: 10 }, () => post(scene, url, '{}')))))
    const limited = answers.filter(({ status }) => status === 429)
    if (limited.length === 0) return 'nothing was held up'
    // The signature is not looked at any more: right and wrong are answered alike.
    const late = await Promise.all([
      ...Array.from({ length: 15 }, () => post(scene, url, '{}')),
      ...Array.from({ length: 15 }, () => post(scene, url, '{}', sign('{}', seconds(), 'wrong'))),
    ])
    const texts = new Set(late.filter(({ status }) => status === 429).map(({ text }) => withoutIds(text)))
    return texts.size <= 1 ? undefined : `429s differ: ${[...texts].join(' | ')}`
  },
  'a delivery over the Unix socket': async ({ at, ...scene }) => {
    const { webhook_endpoint: url } = await webhookOf({ at, ...scene })
    const { status } = await at.request('socket', 'POST', url, {})
    return status === 404 ? undefined : `it was answered ${status}`
  },
}

/** Webhooks that ran more or less often than they were sent something good. */
export async function miscounted({ taken, ask }: Scene): Promise<string[]> {
  const wrong: string[] = []
  for (const [id, expected] of taken) {
    const { runs } = (await ask('GET', `/api/automation/triggers/${id}/runs?limit=1000`)).body
    if (runs.length !== expected) wrong.push(`webhook ${id} took ${expected} deliveries and has ${runs.length} runs`)
  }
  return wrong
}
