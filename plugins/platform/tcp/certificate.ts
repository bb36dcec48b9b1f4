import { stat } from 'node:fs/promises'
import path from 'node:path'
import { createSecureContext } from 'node:tls'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { type Config, Fault, messageOf } from '../../../kernel/plugin.js'
import type { Passage } from './api.js'
import { TcpSettings } from './settings.js'

const MAX_BYTES = 1024 * 1024

/**
 * The configured certificate, undefined without one.
 * @param root absolute; base of relative paths
 * @returns Fault `http_tls_invalid`: one of the two is missing or unreadable, they do not match, or others may read the key
 */
export async function readTls(root: string, config: Pick<Config, 'get'>): Promise<Passage['tls'] | Fault> {
  const [cert, key] = [TcpSettings.cert, TcpSettings.key].map(entry => config.get(entry))
  if (!cert && !key) return undefined
  if (!cert || !key) return invalid('http.tls.cert and http.tls.key must both be set, but one is missing')
  const file = path.resolve(root, key)
  const mode = (await stat(file).catch(() => undefined))?.mode ?? 0
  if ((mode & 0o007) !== 0) return invalid(`other users of this machine can read the private key ${file}`)
  const read = async (at: string) => {
    const bytes = await readRegularFile(path.resolve(root, at), { maxBytes: MAX_BYTES })
    if (!bytes) throw invalid(`there is no file ${path.resolve(root, at)}`)
    return bytes
  }
  try {
    const tls = { cert: await read(cert), key: await read(key) }
    createSecureContext(tls)
    return tls
  } catch (error) {
    return error instanceof Fault ? error : invalid(`the certificate or its key cannot be used: ${messageOf(error)}`)
  }
}

const invalid = (text: string) =>
  new Fault('http_tls_invalid', 500, text, {
    next: 'check http.tls.cert and http.tls.key in config.json, and the mode of both files',
  })
