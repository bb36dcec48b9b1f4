import { chmod, chown, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer, connect as dial, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ImapFlow } from 'imapflow'
import { ChatServer } from './chat-servers.js'
import { freePort } from './free-port.js'

/** Mail belongs to this user: dovecot refuses root. */
const NOBODY = 65534
const MS = 20_000

/** IMAP and LMTP of accounts `user@example.test`, each with the password `secret`. */
export class Dovecot extends ChatServer {
  /** @param introspection address that says whether an access token is valid; with it OAuth2 is a way of login */
  static async start(users: readonly string[], introspection?: string): Promise<Dovecot> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-dovecot-'))
    await chmod(folder, 0o755)
    const port = await freePort()
    for (const user of users) {
      const home = join(folder, 'mail', user)
      await mkdir(home, { recursive: true })
      await chown(home, NOBODY, NOBODY)
    }
    await chown(join(folder, 'mail'), NOBODY, NOBODY)
    await writeFile(join(folder, 'users'), users.map(user => `${user}:{PLAIN}secret\n`).join(''))
    const oauth = `${folder}/oauth2.conf`
    if (introspection !== undefined)
      await writeFile(
        oauth,
        `introspection_mode = post
introspection_url = ${introspection}
username_attribute = username
active_attribute = active
active_value = true
`,
      )
    const byToken = `auth_mechanisms = plain oauthbearer xoauth2
passdb {
  driver = oauth2
  mechanisms = oauthbearer xoauth2
  args = ${oauth}
}`
    const config = `base_dir = ${folder}/run
state_dir = ${folder}/state
log_path = /dev/stderr
protocols = imap lmtp
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
default_internal_user = root
default_internal_group = root
default_login_user = nobody
first_valid_uid = 0
mail_location = maildir:${folder}/mail/%n
auth_username_format = %Ln
auth_failure_delay = 0
mail_max_userip_connections = 100
${introspection === undefined ? '' : byToken}
passdb {
  driver = passwd-file
  args = ${folder}/users
}
userdb {
  driver = static
  args = uid=${NOBODY} gid=${NOBODY} home=${folder}/mail/%n
}
service imap-login {
  chroot =
  inet_listener imap {
    port = ${port}
  }
  inet_listener imaps {
    port = 0
  }
}
service anvil {
  chroot =
}
service stats {
  chroot =
}
service lmtp {
  unix_listener lmtp {
    mode = 0666
  }
}
namespace inbox {
  inbox = yes
  separator = /
  mailbox Sent {
    auto = create
    special_use = \\Sent
  }
}
`
    await writeFile(join(folder, 'dovecot.conf'), config)
    const server = new Dovecot(folder, port, ['/usr/sbin/dovecot', '-F', '-c', join(folder, 'dovecot.conf')])
    await server.start()
    return server
  }

  /** Numbers the messages of a user anew, as a restored backup does. */
  async renumber(user: string): Promise<void> {
    const home = join(this.folder, 'mail', user)
    for (const name of await readdir(home)) if (name.startsWith('dovecot')) await rm(join(home, name))
    const validity = 1_000_000 + (await readdir(join(home, 'cur'))).length
    await writeFile(join(home, 'dovecot-uidlist'), `3 V${validity} N1\n`)
    await chown(join(home, 'dovecot-uidlist'), NOBODY, NOBODY)
  }

  /** Socket on which mail is handed over. */
  get lmtp(): string {
    return join(this.folder, 'run', 'lmtp')
  }
}

/**
 * SMTP that hands all mail of example.test to dovecot; the address `later@example.test` is put off, others do not exist. Mail for
 * `gone@example.test` is taken, and comes back, for dovecot has no such user.
 */
export class Exim extends ChatServer {
  static async start(users: readonly string[], lmtp: string): Promise<Exim> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-exim-'))
    await chmod(folder, 0o755)
    const port = await freePort()
    await mkdir(join(folder, 'spool'))
    const config = `primary_hostname = mail.example.test
spool_directory = ${folder}/spool
log_file_path = ${folder}/log_%s
pid_file_path = ${folder}/exim.pid
local_interfaces = 127.0.0.1
daemon_smtp_ports = ${port}
exim_user = root
exim_group = root
never_users =
acl_smtp_rcpt = acl_rcpt
acl_smtp_data = acl_data
host_lookup =
rfc1413_query_timeout = 0s
tls_advertise_hosts =
smtp_accept_max = 100
keep_environment =
begin acl
acl_rcpt:
  defer local_parts = later
        message = try again later
  deny !local_parts = ${users.join(' : ')}
       message = no such user here
  accept
acl_data:
  deny condition = \${if match{$message_body}{refuse this content}}
       message = content refused
  accept
begin routers
local:
  driver = accept
  transport = lmtp
begin transports
lmtp:
  driver = lmtp
  socket = ${lmtp}
  user = Debian-exim
begin retry
* * F,2h,15m
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = \${if eq{$auth3}{secret}}
  server_set_id = $auth2
xoauth2:
  driver = plaintext
  public_name = XOAUTH2
  server_prompts =
  server_condition = \${if match{$auth1}{\\Nauth=Bearer good-\\N}}
  server_set_id = bot
`
    await writeFile(join(folder, 'exim.conf'), config, { mode: 0o644 })
    const server = new Exim(folder, port, ['/usr/sbin/exim4', '-C', join(folder, 'exim.conf'), '-bdf'])
    await server.start()
    return server
  }
}

/** Runs both for some users. */
export async function startMail(users: readonly string[], introspection?: string) {
  const imap = await Dovecot.start(users, introspection)
  const smtp = await Exim.start([...users, 'gone'], imap.lmtp)
  const remove = async () => {
    await smtp.remove()
    await imap.remove()
  }
  return { imap, smtp, remove }
}

/** A wire to a port of this machine that can be cut, and that can lose everything without being cut. */
export class Wire {
  readonly #sockets = new Set<Socket>()
  /** What comes from the server gets lost. */
  silent = false
  /** Changes what the server says. */
  altered: (chunk: Buffer) => Buffer = chunk => chunk
  /** Changes what the client says. */
  asked: (chunk: Buffer) => Buffer = chunk => chunk
  connections = 0

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static async to(port: number): Promise<Wire> {
    const server = createServer(near => {
      const far = dial(port, '127.0.0.1')
      wire.connections++
      for (const socket of [near, far]) {
        wire.#sockets.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => {
          wire.#sockets.delete(socket)
          near.destroy()
          far.destroy()
        })
      }
      near.on('data', chunk => {
        if (!deaf.has(near)) far.write(wire.asked(chunk))
      })
      far.on('data', chunk => {
        // A connection that was silent once stays so.
        if (wire.silent) deaf.add(near)
        if (!deaf.has(near)) near.write(wire.altered(chunk))
      })
    })
    const deaf = new WeakSet<Socket>()
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const wire = new Wire(server, (server.address() as { port: number }).port)
    return wire
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): Promise<void> {
    this.cut()
    return new Promise(resolve => this.server.close(() => resolve()))
  }
}

/** Mail of one account, as its owner sees it. */
export class Owner {
  private constructor(readonly client: ImapFlow) {}

  static async of(port: number, user: string): Promise<Owner> {
    const client = new ImapFlow({
      host: '127.0.0.1',
      port,
      secure: false,
      auth: { user, pass: 'secret' },
      logger: false,
      disableAutoIdle: true,
    })
    client.on('error', () => {})
    await client.connect()
    return new Owner(client)
  }

  /** Puts a message into a folder as a server that delivers it does. */
  async put(message: string, folder = 'INBOX', received?: Date): Promise<void> {
    await this.client.append(folder, message.replace(/\r?\n/g, '\r\n'), [], received)
  }

  /** Texts of all messages of a folder. */
  async all(folder = 'INBOX'): Promise<string[]> {
    await this.client.mailboxOpen(folder, { readOnly: true })
    const found = await this.client.fetchAll('1:*', { source: true, uid: true })
    await this.client.mailboxClose()
    return found.map(({ source }) => source?.toString('utf8') ?? '')
  }

  /** Resolves with the first message that holds the text. */
  async finds(text: string, folder = 'INBOX'): Promise<string> {
    const until = performance.now() + MS
    for (;;) {
      const found = (await this.all(folder)).find(message => message.includes(text))
      if (found !== undefined) return found
      if (performance.now() > until) throw new Error(`no message with ${text} in ${folder}`)
      await new Promise(resolve => setTimeout(resolve, 50))
    }
  }

  /** Whether the message that holds the text counts as read. */
  async hasSeen(text: string): Promise<boolean> {
    await this.client.mailboxOpen('INBOX', { readOnly: true })
    const found = await this.client.fetchAll('1:*', { flags: true, source: true })
    return found.find(({ source }) => source?.includes(text))?.flags?.has('\\Seen') === true
  }

  leave(): Promise<void> {
    return this.client.logout()
  }
}

/** Removes a folder. */
export const remove = (folder: string) => rm(folder, { recursive: true, force: true })
