export { Arrivals, remember } from './arrivals.js'
export { bytesOf, fileMissing, fileName } from './download.js'
export { type HttpReply, type HttpRequest, http, isHmac, isSame, objectOf } from './http.js'
export { type ExpectedJwt, JwtRefused, RemoteKeys, signJwt, type VerifiedJwt, verifyJwt } from './jwt.js'
export {
  durable,
  type ListenConfig,
  listen,
  listenConfigOf,
  taken,
  type WebhookHandler,
  type WebhookReply,
  type WebhookRequest,
} from './listener.js'
export { type Block, type Inline, markdown } from './markdown.js'
export { isAfter, Positions } from './positions.js'
export { RpcConnection, RpcError } from './rpc.js'
export { type Bridge, runBridge, type Surroundings } from './run.js'
export { type ManagedInstance, messageOf, type Open } from './running.js'
export { type Settings, settingsOf, unbound } from './settings.js'
export { checksOf, Standing, silence, webhookCheck } from './standing.js'
export { clip, linesOf, measure, split, type TextUnit } from './text.js'
export {
  type Backoff,
  backoffMs,
  type Retries,
  realTiming,
  retryAfterMs,
  retrying,
  type Timing,
} from './timing.js'
export { authoritiesOf, certificatesOf, tlsProblem } from './tls.js'
export * from './types.js'
