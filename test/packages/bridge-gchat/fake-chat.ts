import { generateKeyPairSync } from 'node:crypto'
import { signJwt } from '../../../packages/bridge-kit/src/index.js'
import { type Answer, HttpEndpoint, type Received } from '../../harness/http-endpoint.js'

export const PROJECT = '1234567890'
export const URL_AUDIENCE = 'https://bot.example/hooks/gchat'
export const CHAT = 'chat@system.gserviceaccount.com'
export const SPACE = 'spaces/AAAA'
export const DIRECT = 'spaces/DDDD'

const keys = ['account', 'chat', 'google'].map(() => generateKeyPairSync('rsa', { modulusLength: 2048 }))
export const [account, chat, google] = keys.map(({ publicKey, privateKey }) => ({
  publicKey,
  jwk: publicKey.export({ format: 'jwk' }),
  pem: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  privatePem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
})) as [Key, Key, Key]
interface Key {
  readonly publicKey: (typeof keys)[number]['publicKey']
  readonly jwk: object
  readonly pem: string
  readonly privatePem: string
}

/** The API of Google Chat, the login, and the public keys. */
export class FakeChat {
  endpoint!: HttpEndpoint
  readonly messages = new Map<string, Record<string, unknown>>()
  /** Answers in place of the API. */
  instead: (request: Received) => Answer | Promise<Answer> | undefined = () => undefined
  tokens = 0
  expiresIn = 3600

  static async start(): Promise<FakeChat> {
    const fake = new FakeChat()
    fake.endpoint = await HttpEndpoint.start(request => fake.instead(request) ?? fake.#answer(request))
    return fake
  }

  /** The JSON key of the service account that may sign in here. */
  get credentials(): string {
    return JSON.stringify({
      type: 'service_account',
      client_email: 'bot@project.iam.gserviceaccount.com',
      private_key: account.privatePem,
      private_key_id: 'k1',
      token_uri: `${this.endpoint.url}/token`,
    })
  }

  asked(method: string, path: RegExp): Received[] {
    return this.endpoint.received.filter(one => one.method === method && path.test(one.path))
  }

  make(space: string, id: string, message: object) {
    const name = `${space}/messages/${this.messages.size}.${this.messages.size}`
    const made = { ...message, name, clientAssignedMessageId: id }
    this.messages.set(name, made)
    return made
  }

  #answer(request: Received): Answer {
    const { method, path, headers, body } = request
    const url = new URL(path, 'http://x')
    const at = url.pathname
    if (at === `/service_accounts/v1/metadata/x509/${CHAT}`) return { body: { c1: chat.pem } }
    if (at === '/oauth2/v3/certs') return { body: { keys: [{ ...google.jwk, kid: 'g1' }] } }
    if (at === '/token') {
      this.tokens++
      return { body: { access_token: `ya29.${this.tokens}`, expires_in: this.expiresIn } }
    }
    if (headers.authorization !== `Bearer ya29.${this.tokens}`) return chatError(401, 'UNAUTHENTICATED')
    if (at === '/v1/spaces') return { body: this.#spaces(url.searchParams.get('pageToken')) }
    if (at === '/v1/spaces:findDirectMessage')
      return url.searchParams.get('name') === 'users/17' ? { body: { name: DIRECT } } : chatError(404, 'NOT_FOUND')
    if (at.startsWith('/v1/media/')) return { body: `bytes of ${at}` }
    const id = url.searchParams.get('messageId') ?? ''
    const [, space = '', message = ''] = /^\/v1\/(spaces\/\w+)\/messages(?:\/(.+))?$/.exec(at) ?? []
    if (space !== SPACE && space !== DIRECT) return chatError(404, 'NOT_FOUND')
    const one = [...this.messages.values()].find(
      ({ name, clientAssignedMessageId }) =>
        name === `${space}/messages/${message}` || clientAssignedMessageId === (message || id),
    )
    if (method === 'POST') {
      if (!/^client-[a-z0-9-]{1,56}$/.test(id)) return chatError(400, 'INVALID_ARGUMENT')
      return one ? chatError(409, 'ALREADY_EXISTS') : { body: this.make(space, id, JSON.parse(body)) }
    }
    if (!one) return chatError(404, 'NOT_FOUND')
    if (method === 'PATCH') one.text = JSON.parse(body).text
    if (method === 'DELETE') this.messages.delete(String(one.name))
    return { body: one }
  }

  #spaces(page: string | null) {
    const space = { name: SPACE, spaceType: 'SPACE', displayName: 'Ops' }
    const direct = { name: DIRECT, spaceType: 'DIRECT_MESSAGE', singleUserBotDm: true }
    return page === null ? { spaces: [space], nextPageToken: 'two' } : { spaces: [direct, null, { name: '../x' }] }
  }
}

export const chatError = (status: number, name: string): Answer => ({
  status,
  body: { error: { code: status, status: name, message: 'why' } },
})

const claimsOf = (more: object) => {
  const now = Math.floor(Date.now() / 1000)
  return { iat: now, exp: now + 3600, ...more }
}
/** A token as Google Chat makes it for a project. */
export const ofProject = (more: object = {}, key = chat.privatePem, kid = 'c1') =>
  signJwt(claimsOf({ iss: CHAT, aud: PROJECT, ...more }), key, { kid })
/** A token of Google's login, for the address of the endpoint. */
export const ofUrl = (more: object = {}) =>
  signJwt(
    claimsOf({ iss: 'https://accounts.google.com', aud: URL_AUDIENCE, email: CHAT, email_verified: true, ...more }),
    google.privatePem,
    { kid: 'g1' },
  )
