import { SecretSet } from '../../../kernel/kit/secret-set.js'
import { Serial } from '../../../kernel/kit/serial.js'
import { Collected } from '../../../kernel/platform.js'
import { type Actor, type Fault, type Incoming, operator } from '../../../kernel/plugin.js'
import type { ApiKey, MatrixReply } from '../../../schemas/daemon/auth.js'
import { accessTo } from './access.js'
import { type AuthApi, AuthErrors, TOKEN_FILE } from './api.js'
import { ApiKeys } from './keys.js'
import type { K } from './needs.js'
import { OperatorToken } from './operator-token.js'
import { UnknownTokens } from './unknown-tokens.js'

/** Prefix of this plugin's tokens; other plugins use different ones. */
const OURS = /^svc_(op|key)_/
/** A longer header cannot contain a token of this plugin. */
const BEARER = /^Bearer +(\S{1,400})$/i

/** Authentication over TCP: the operator by a token, programs by keys. */
export class AuthService implements AuthApi {
  /** Hides the operator token. Keys are stored only as hashes, so they cannot be hidden. */
  readonly hidden = new SecretSet()
  readonly unknown: UnknownTokens
  readonly #token: OperatorToken
  readonly #keys: ApiKeys
  readonly #rotations = new Serial()
  #showToken: (() => void) | undefined

  constructor(private readonly kernel: K) {
    const { db, clock, ids, home, log } = kernel
    this.#token = new OperatorToken(home.path(TOKEN_FILE), ids, log, value => this.#hide(value))
    this.#keys = new ApiKeys(db, clock, ids)
    this.unknown = new UnknownTokens(kernel)
  }

  async start(): Promise<void> {
    this.#keys.load()
    await this.#token.open()
  }

  /**
   * The caller that a request's token identifies. Requests without a token, or with one in another format, are left to other
   * plugins.
   */
  authenticate({ headers, id: cause }: Incoming): Actor | Fault | undefined {
    const token = bearerOf(headers.authorization)
    if (token === undefined) return undefined
    const origin = headers['sec-fetch-site'] === 'same-origin' ? 'web' : 'http'
    if (this.#token.matches(token)) return callerOf(operator, origin, cause)
    const key = this.#keys.find(token)
    if (key !== undefined) return callerOf(keyParty(key), origin, cause)
    return OURS.test(token) ? AuthErrors.token_unknown() : undefined
  }

  hasOperatorToken(authorization: Incoming['headers'][string]): boolean {
    const token = bearerOf(authorization)
    return token !== undefined && this.#token.matches(token)
  }

  /** Requires the operator token, also on the socket. */
  mustBeOperator(authorization: string | undefined): void {
    if (!this.hasOperatorToken(authorization)) throw AuthErrors.operator_token_required()
  }

  createKey(name?: string): Promise<{ readonly id: string; readonly apiKey: string }> {
    return this.#keys.create(name)
  }

  keys(): ApiKey[] {
    return this.#keys.list()
  }

  /** Revokes a key by id or name: new requests are refused and running ones end immediately. Resolves to the id. */
  async deleteKey(reference: string): Promise<string> {
    const id = this.#keys.idOf(reference)
    const deleted = this.#keys.delete(id)
    this.kernel.needs.callers.dismiss(caller => caller.id === id, AuthErrors.token_unknown('the key was deleted'))
    await deleted
    return id
  }

  /**
   * Replaces the operator token and ends running requests of callers with the old one. Rotations are serialized and check the
   * token when they start: concurrent ones would race for the file, which could end up with the wrong token.
   * @throws Fault `operator_token_required`, also for a token that an earlier rotation replaced
   */
  rotate(request: string, authorization: string | undefined): Promise<void> {
    return this.#rotations.run(async () => {
      this.mustBeOperator(authorization)
      await this.#token.rotate()
      const isOver = ({ id, origin, cause }: Actor) =>
        id === operator.id && (origin === 'http' || origin === 'web') && cause !== request
      this.kernel.needs.callers.dismiss(isOver, AuthErrors.token_unknown('the operator token was rotated'))
    })
  }

  /** Access of each caller to all served routes, sorted by path. */
  matrix(): MatrixReply {
    const routes = this.kernel.collect(Collected.routes).map(({ entry: { owner, route } }) => accessTo(owner, route))
    const keyOf = ({ path, method }: { path: string; method: string }) => `${path} ${method}`
    return { routes: routes.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)) }
  }

  #hide(value: string): void {
    const show = this.hidden.hide(value, { name: 'operator-token' })
    this.#showToken?.()
    this.#showToken = show
  }
}

const bearerOf = (header: Incoming['headers'][string]): string | undefined =>
  typeof header === 'string' ? BEARER.exec(header)?.[1] : undefined

const keyParty = (id: string): Pick<Actor, 'kind' | 'id' | 'owner'> => ({
  kind: 'operator',
  id,
  owner: { kind: 'operator', id },
})

/** Lists the members explicitly: a spread would cost each request more than the comparison of the token. */
const callerOf = (who: Pick<Actor, 'kind' | 'id' | 'owner'>, origin: string, cause: string): Actor => ({
  kind: who.kind,
  id: who.id,
  owner: who.owner,
  source: operator.source,
  origin,
  cause,
})
