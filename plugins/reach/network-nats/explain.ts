import { messageOf } from '../../../kernel/plugin.js'

/** Known connection errors with advice; unknown ones are shown as they are. */
const KNOWN: readonly (readonly [pattern: RegExp, text: (message: string) => string])[] = [
  [
    /certificate|self.signed|altnames|hostname/i,
    message =>
      `its certificate is not trusted (${message}): give the file of its certificate authority with --ca, or as network.nats.tls.ca`,
  ],
  [
    /authoriz|authenticat/i,
    message => `it refuses the login (${message}): give other credentials with --credentials-ref`,
  ],
  [/refused/i, message => `no server listens there (${message}): start it, or give another one with svc network join`],
  [/EPIPE|ECONNRESET/, message => `the connection broke (${message})`],
]

/** Reason of a failed connection, for people. */
export function explained(error: unknown): string {
  const message = messageOf(error)
  const [, text] = KNOWN.find(([pattern]) => pattern.test(message)) ?? []
  return text ? text(message) : message
}
