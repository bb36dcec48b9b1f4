import { execFile } from 'node:child_process'
import { chmod, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A certificate with its key: paths of files in PEM. */
export interface Certificate {
  readonly cert: string
  readonly key: string
}

/** An authority of a test, which signs certificates of servers. */
export class Authority {
  #made = 0

  private constructor(
    private readonly folder: string,
    readonly own: Certificate,
    /** Its certificate in PEM. */
    readonly pem: string,
  ) {}

  /** Makes one in an empty folder. */
  static async in(folder: string): Promise<Authority> {
    const own = await make(folder, 'authority', ['-subj', '/CN=Authority of a test'])
    return new Authority(folder, own, await readFile(own.cert, 'utf8'))
  }

  /** A certificate for some names, `DNS:localhost` or `IP:127.0.0.1`. */
  issue(...names: readonly string[]): Promise<Certificate> {
    const { cert, key } = this.own
    const san = ['-addext', `subjectAltName=${names.join(',')}`, '-addext', 'basicConstraints=critical,CA:FALSE']
    return make(this.folder, `server-${++this.#made}`, ['-subj', '/CN=server', '-CA', cert, '-CAkey', key, ...san])
  }

  /** A certificate in PEM. */
  static read({ cert }: Certificate): Promise<string> {
    return readFile(cert, 'utf8')
  }

  /** One that no authority signed. */
  selfSigned(...names: readonly string[]): Promise<Certificate> {
    const san = ['-addext', `subjectAltName=${names.join(',')}`]
    return make(this.folder, `own-${++this.#made}`, ['-subj', '/CN=server', ...san])
  }
}

async function make(folder: string, name: string, more: readonly string[]): Promise<Certificate> {
  const made = { cert: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) }
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  await run('openssl', ['req', '-x509', ...curve, '-keyout', made.key, '-out', made.cert, ...more])
  // Servers that give up root read it, too.
  await chmod(made.key, 0o644)
  return made
}
