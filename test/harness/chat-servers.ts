import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Certificate } from './certificates.js'
import { freePort } from './free-port.js'

const STARTS_MS = 20_000

/** A chat server in the foreground, in a folder of its own, on a port that it keeps when it starts again. */
export class ChatServer {
  #child: ChildProcess | undefined
  #output = ''

  protected constructor(
    readonly folder: string,
    readonly port: number,
    private readonly argv: readonly string[],
  ) {}

  /** What it printed. */
  get output(): string {
    return this.#output
  }

  /** Resolves when it takes connections. */
  async start(): Promise<void> {
    const [command = '', ...args] = this.argv
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: this.folder })
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (this.#output += chunk))
    const failed = once(child, 'error').then(([error]) => Promise.reject(error))
    failed.catch(() => {})
    const until = performance.now() + STARTS_MS
    while (!(await Promise.race([accepts(this.port), failed]))) {
      if (child.exitCode !== null || performance.now() > until)
        throw new Error(`${command} does not listen on ${this.port}:\n${this.#output}`)
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }

  /** Ends it, with its connections; `hard` as when the machine loses power. */
  async stop(hard = false): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill(hard ? 'SIGKILL' : 'SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
    await gone
    clearTimeout(timer)
  }

  /** Holds it: connections stay open, and nothing comes. */
  pause(): void {
    this.#child?.kill('SIGSTOP')
  }

  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  async remove(): Promise<void> {
    this.resume()
    await this.stop()
    await rm(this.folder, { recursive: true, force: true })
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** A server of IRC. */
export class Ngircd extends ChatServer {
  private constructor(
    folder: string,
    port: number,
    argv: readonly string[],
    readonly tlsPort: number,
  ) {
    super(folder, port, argv)
  }

  /** With a certificate it speaks TLS on `tlsPort`. */
  static async start(
    options: {
      readonly global?: string
      readonly limits?: string
      readonly more?: string
      readonly tls?: Certificate
    } = {},
  ) {
    const folder = await mkdtemp(join(tmpdir(), 'svc-ngircd-'))
    // As root it changes to another user, who has to read its configuration.
    await chmod(folder, 0o755)
    const port = await freePort()
    const tlsPort = options.tls === undefined ? 0 : await freePort()
    const { tls } = options
    const ssl = tls ? `[SSL]\nCertFile = ${tls.cert}\nKeyFile = ${tls.key}\nPorts = ${tlsPort}` : ''
    const config = `[Global]
Name = irc.example.test
Info = test
Listen = 127.0.0.1
Ports = ${port}
Network = ExampleNet
AdminInfo1 = test
AdminEMail = test@example.test
MotdPhrase = "hello"
${options.global ?? ''}
[Limits]
MaxConnectionsIP = 0
MaxPenaltyTime = 0
${options.limits ?? ''}
[Options]
DNS = no
Ident = no
PAM = no
${ssl}
${options.more ?? ''}
`
    await writeFile(join(folder, 'ngircd.conf'), config)
    const argv = ['/usr/sbin/ngircd', '-n', '-f', join(folder, 'ngircd.conf')]
    const server = new Ngircd(folder, port, argv, tlsPort)
    await server.start()
    return server
  }
}

/** An account with the fewest rounds that the server accepts: with its 10,000 most of a test's time would go into logins. */
function hashed(password: string): string {
  const [salt, rounds] = ['salt', 4096]
  const key = pbkdf2Sync(password, salt, rounds, 20, 'sha1')
  const hmac = (text: string) => createHmac('sha1', key).update(text).digest()
  const stored = createHash('sha1').update(hmac('Client Key')).digest('hex')
  const fields = { salt, stored_key: stored, server_key: hmac('Server Key').toString('hex') }
  const lines = Object.entries(fields).map(([name, value]) => `["${name}"] = "${value}";`)
  return `return { ${lines.join(' ')} ["iteration_count"] = ${rounds}; };\n`
}

/** A server of XMPP with rooms and archives; host `localhost`, rooms at `rooms.localhost`. */
export class Prosody extends ChatServer {
  private constructor(
    folder: string,
    port: number,
    argv: readonly string[],
    readonly tlsPort: number,
  ) {
    super(folder, port, argv)
  }

  /** With a certificate it offers STARTTLS, and speaks TLS on `tlsPort`. */
  static async start(options: {
    readonly users: Readonly<Record<string, string>>
    readonly tls?: Certificate
    readonly more?: string
  }) {
    const folder = await mkdtemp(join(tmpdir(), 'svc-prosody-'))
    const { tls } = options
    const tlsPort = tls === undefined ? 0 : await freePort()
    const ssl = tls ? `{ certificate = ${JSON.stringify(tls.cert)}; key = ${JSON.stringify(tls.key)} }` : ''
    const port = await freePort()
    const accounts = join(folder, 'data', 'localhost', 'accounts')
    await mkdir(accounts, { recursive: true })
    for (const [user, password] of Object.entries(options.users))
      await writeFile(join(accounts, `${user}.dat`), hashed(password))
    const config = `run_as_root = true
daemonize = false
data_path = ${JSON.stringify(join(folder, 'data'))}
pidfile = ${JSON.stringify(join(folder, 'prosody.pid'))}
plugin_paths = {}
installer_plugin_path = ${JSON.stringify(join(folder, 'plugins'))}
interfaces = { "127.0.0.1" }
c2s_ports = { ${port} }
${tls ? `ssl = ${ssl}\nc2s_direct_tls_ssl = ${ssl}` : ''}
c2s_direct_tls_ports = {${tls ? ` ${tlsPort} ` : ''}}
s2s_ports = {}
modules_enabled = { ${tls ? '"tls"; ' : ''}"roster"; "saslauth"; "disco"; "ping"; "mam"; "smacks"; "offline"; "carbons"; "time" }
modules_disabled = { "s2s"; "posix"; "admin_shell"; "admin_socket"; "http" }
authentication = "internal_hashed"
c2s_require_encryption = false
allow_unencrypted_plain_auth = true
smacks_hibernation_time = 60
max_archive_query_results = 100
log = { warn = "*console" }
${options.more ?? ''}
VirtualHost "localhost"
Component "rooms.localhost" "muc"
  modules_enabled = { "muc_mam" }
  restrict_room_creation = false
  muc_room_locking = false
  muc_log_by_default = true
  log_all_rooms = true
`
    await writeFile(join(folder, 'prosody.cfg.lua'), config)
    const argv = ['/usr/bin/prosody', '-F', '--config', join(folder, 'prosody.cfg.lua')]
    const server = new Prosody(folder, port, argv, tlsPort)
    await server.start()
    return server
  }
}
