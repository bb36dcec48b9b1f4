import {
  type Adapter,
  type Check,
  type Delivery,
  type DeliveryResult,
  type Host,
  type Instance,
  messageOf,
  NotSent,
  realTiming,
  type SettleResult,
  Standing,
  silence,
  type Target,
  type Timing,
  type Unsettled,
} from '../../bridge-kit/src/index.js'
import { answerId } from './addresses.js'
import { configOf, type EmailConfig } from './config.js'
import { hasMessage, Mailbox } from './mailbox.js'
import { PositionFile } from './position.js'
import { compose, send, tryLogin } from './sending.js'

/** Opens one instance, which reconnects until it is closed. */
export function openEmail(instance: Instance, host: Host, timing: Timing = realTiming): Adapter {
  return new EmailBridge(configOf(instance), new PositionFile(host.dataDir, instance.id), host, timing)
}

class EmailBridge implements Adapter {
  #mailbox: Mailbox | undefined
  readonly #standing: Standing
  readonly #running: Promise<void>
  #watching: Promise<void> = Promise.resolve()
  /** Why sending is impossible; undefined: it works. */
  #mute: string | undefined

  constructor(
    private readonly config: EmailConfig,
    private readonly position: PositionFile,
    private readonly host: Host,
    private readonly timing: Timing,
  ) {
    this.#standing = new Standing(host, timing)
    this.#running = this.#standing.keep(config.imap.host, () => this.#connect())
  }

  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    const { event, target } = delivery
    if (event === 'delete') throw new NotSent('unsupported_capability', 'a sent e-mail cannot be deleted')
    // A partial answer is not sent.
    if (event !== 'final' && event !== 'error') return { status: 'delivered' }
    const subject = this.position.subjectOf(target.thread_id)
    const message = await compose(delivery, this.config, subject)
    const result = await send(message, this.config)
    const refused = result.status === 'not_sent' && result.kind === 'missing_token'
    this.#mute = refused ? result.message : undefined
    this.#tell()
    if (result.status === 'delivered') void this.#keepCopy(message.bytes)
    return result
  }

  async settle({ nonce }: Unsettled): Promise<SettleResult> {
    const { sentFolder, address } = this.config
    if (sentFolder === undefined) return { outcome: 'unknown', final: true }
    const id = answerId(nonce, address)
    const found = await hasMessage(this.config, sentFolder, id)
    // The copy is stored after the message was sent, so a missing copy proves nothing.
    return found ? { outcome: 'delivered', remote_message_id: id } : { outcome: 'unknown' }
  }

  targets(): readonly Target[] {
    return []
  }

  async verify(): Promise<readonly Check[]> {
    const { imap, smtp, trustedAuthservId, sentFolder } = this.config
    const mailbox = this.#mailbox
    const alive = await (mailbox?.alive() ?? Promise.reject(new Error('not connected'))).then(
      () => undefined,
      error => messageOf(error),
    )
    const mute = await tryLogin(this.config).then(
      () => undefined,
      error => messageOf(error),
    )
    return [
      {
        check: 'email.imap',
        status: alive === undefined ? 'pass' : 'fail',
        remediation: alive === undefined ? '' : `Check that ${imap.host}:${imap.port} is reachable: ${alive}`,
      },
      {
        check: 'email.smtp',
        status: mute === undefined ? 'pass' : 'fail',
        remediation: mute === undefined ? '' : `Check server, port and password of ${smtp.host}:${smtp.port}: ${mute}`,
      },
      {
        check: 'email.position',
        status: this.position.lasting ? 'pass' : 'warn',
        remediation: this.position.lasting
          ? ''
          : 'Without a data folder, mail that arrives while the daemon is down is not read.',
      },
      {
        check: 'email.authentication',
        status: trustedAuthservId === undefined ? 'warn' : 'pass',
        remediation:
          trustedAuthservId === undefined
            ? 'Set provider_config.trusted_authserv_id, otherwise no sender counts as authenticated.'
            : '',
      },
      {
        check: 'email.sent_folder',
        status: sentFolder === undefined ? 'warn' : 'pass',
        remediation:
          sentFolder === undefined
            ? 'Set provider_config.sent_folder, so that an answer whose sending was interrupted can be looked up.'
            : '',
      },
    ]
  }

  deaf(): string | undefined {
    const mailbox = this.#mailbox
    return mailbox && silence(this.config.imap.host, mailbox.lastHeard, this.config.idleMs * 2 + 60_000, this.timing)
  }

  async close(): Promise<void> {
    this.#mailbox?.close()
    await this.#running
    // Waits for a position that is being saved.
    await this.#watching
  }

  /** Runs one connection; resolves with why it ended. */
  async #connect(): Promise<string> {
    const mailbox = await Mailbox.open(this.config, this.position, this.host, this.timing)
    this.#mailbox = mailbox
    this.#tell()
    const watching = mailbox.watch()
    this.#watching = watching.catch(() => {})
    return Promise.race([mailbox.ended, watching.then(() => mailbox.ended)]).finally(() => {
      mailbox.close()
      this.#mailbox = undefined
    })
  }

  #tell(): void {
    if (!this.#mailbox) return
    this.#standing.report(
      this.#mute === undefined
        ? { status: 'ready' }
        : { status: 'degraded', reason: 'auth_failed', message: `nothing can be sent: ${this.#mute}` },
    )
  }

  async #keepCopy(message: Buffer): Promise<void> {
    const { sentFolder, sentCopies } = this.config
    if (sentFolder === undefined || sentCopies === 'server') return
    await (this.#mailbox?.store(sentFolder, message) ?? Promise.reject(new Error('not connected'))).catch(error =>
      this.host.log(`no copy in ${sentFolder}: ${messageOf(error)}`),
    )
  }
}
