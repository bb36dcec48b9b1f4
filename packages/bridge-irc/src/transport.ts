import { isIP } from 'node:net'
import tls from 'node:tls'
import Net from 'irc-framework/src/transports/net.js'

const CONNECTING = 1

/** The library's transport with configurable certificate authorities. */
export class Transport extends Net {
  override connect(): void {
    const { tls: isEncrypted, host, port, ca, rejectUnauthorized } = this.options
    if (!isEncrypted) {
      super.connect()
      return
    }
    this.disposeSocket()
    this.requested_disconnect = false
    this.incoming_buffer = Buffer.alloc(0)
    this.state = CONNECTING
    // The certificate is checked against the name even without SNI, which cannot carry an IP address.
    const servername = isIP(host) === 0 ? { servername: host } : {}
    const authorities = ca === undefined ? {} : { ca: [...ca] }
    this.socket = tls.connect({ host, port, rejectUnauthorized, ...servername, ...authorities })
    this._onSocketCreate(this.options, this.socket)
  }
}
