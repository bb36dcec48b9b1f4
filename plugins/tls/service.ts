import { Fault, KernelErrors, type PluginKernel } from '../../kernel/plugin.js'
import { type Passage, TcpSettings } from '../tcp/api.js'
import { readTls } from './certificate.js'
import { TlsSettings } from './settings.js'

/** Says how TCP is served: with which certificate, and that nothing is forgotten where other machines reach it. */
export class TlsService {
  constructor(private readonly kernel: PluginKernel) {}

  /** A fault: `http_tls_invalid`, or `forbidden` at an address that is not guarded. */
  async bind(host: string, isLoopback: boolean): Promise<Fault | Passage> {
    const { config, home } = this.kernel
    try {
      const tls = await readTls(home.root, config)
      const refused = isLoopback ? undefined : this.#beyondLoopback(host, tls !== undefined)
      return refused ?? (tls ? { tls } : {})
    } catch (error) {
      if (error instanceof Fault) return error
      throw error
    }
  }

  #beyondLoopback(host: string, hasTls: boolean): Fault | undefined {
    const { config } = this.kernel
    const refused = (lacks: string, next: string) =>
      KernelErrors.forbidden(`http.host ${host} is reachable from other machines, and ${lacks}`, {
        next: `${next} in config.json, or set http.host to localhost`,
      })
    if (config.get(TcpSettings.allowedHosts).length === 0)
      return refused('http.allowed_hosts names no host that they may call it', 'set http.allowed_hosts')
    if (!hasTls && !config.get(TlsSettings.plaintext))
      return refused(
        'whoever is in between reads each token',
        'set http.tls.cert and http.tls.key, or http.plaintext to true where something else encrypts,',
      )
    return undefined
  }
}
