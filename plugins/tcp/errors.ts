import { defineErrors } from '../../kernel/plugin.js'

/** What is refused over TCP alone. */
export const TcpErrors = defineErrors({
  cross_site: {
    status: 403,
    message: 'requests from other sites are refused; call the daemon from this machine directly',
  },
  misdirected: { status: 421, message: 'the Host header names another host than this daemon listens on' },
})
