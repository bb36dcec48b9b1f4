import { defineErrors } from '../../kernel/plugin.js'

export const OwnUserErrors = defineErrors({
  unauthorized_peer: {
    status: 401,
    message: 'over TCP the daemon answers without a token only to the user that it runs as',
    next: 'send the header `Authorization: Bearer <token>` (`svc auth token` prints one), or use the Unix socket',
  },
})
