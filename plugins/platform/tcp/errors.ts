import { defineErrors } from '../../../kernel/plugin.js'

/** Errors that occur only over TCP. */
export const TcpErrors = defineErrors({
  cross_site: {
    status: 403,
    message: 'requests from other sites are refused; call the daemon from this machine directly',
  },
  unauthorized_peer: {
    status: 401,
    message: 'over TCP the daemon answers without a token only to the user that it runs as',
    next: 'send the header `Authorization: Bearer <token>` (`svc auth token` prints one), or use the Unix socket',
  },
  misdirected: { status: 421, message: 'the Host header does not name a host of this daemon' },
})
