import { JwtRefused, RemoteKeys, verifyJwt } from '../../bridge-kit/src/index.js'

const CHAT = 'chat@system.gserviceaccount.com'
const GOOGLE = ['https://accounts.google.com', 'accounts.google.com']

/** Accepted audiences of events. */
export interface Audience {
  readonly projectNumber: string | undefined
  readonly url: string | undefined
}

/**
 * Verifies the token of an event. With a project number, the token must name the project: as audience of a token signed by Google
 * Chat, or as the service account of its add-ons. Without one, it must name the endpoint's URL, which an app of another project can
 * do as well.
 */
export class Bearer {
  readonly #ofChat: RemoteKeys
  readonly #ofGoogle: RemoteKeys

  constructor(
    private readonly audience: Audience,
    keysUrl: string,
    signal: AbortSignal,
  ) {
    this.#ofChat = new RemoteKeys(`${keysUrl}/service_accounts/v1/metadata/x509/${CHAT}`, signal)
    this.#ofGoogle = new RemoteKeys(`${keysUrl}/oauth2/v3/certs`, signal)
  }

  /**
   * @throws JwtRefused If the token is invalid
   * @throws Error If Google's keys cannot be fetched
   */
  async check(authorization: string, now: number): Promise<void> {
    const [, token = ''] = /^Bearer ([\w.-]+)$/i.exec(authorization) ?? []
    const { projectNumber, url } = this.audience
    const isOfGoogle = projectNumber === undefined || isOpenId(token)
    if (!isOfGoogle) {
      await verifyJwt(token, this.#ofChat, { issuers: [CHAT], audiences: [projectNumber], now })
      return
    }
    const audiences = url === undefined ? [] : [url]
    const { claims } = await verifyJwt(token, this.#ofGoogle, { issuers: GOOGLE, audiences, now })
    const account =
      projectNumber === undefined ? CHAT : `service-${projectNumber}@gcp-sa-gsuiteaddons.iam.gserviceaccount.com`
    if (claims.email !== account || claims.email_verified !== true)
      throw new JwtRefused(
        projectNumber === undefined
          ? 'the token was not issued by Google Chat'
          : 'the token does not name the project: choose Project number as authentication audience of the app',
      )
  }
}

/** Whether a token claims to be a Google OpenID token. This only selects the keys that verify it. */
function isOpenId(token: string): boolean {
  try {
    const { iss } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    return GOOGLE.includes(iss)
  } catch {
    return false
  }
}
