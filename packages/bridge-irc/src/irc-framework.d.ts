/** The part of irc-framework that the adapter uses; the package has no types. */
declare module 'irc-framework' {
  import type { EventEmitter } from 'node:events'

  export interface IrcMessage {
    readonly command: string
    readonly params: readonly string[]
    readonly tags: Readonly<Record<string, string>>
    readonly nick: string
    readonly ident: string
    readonly hostname: string
  }

  export interface Spoken {
    readonly nick: string
    readonly ident: string
    readonly hostname: string
    readonly target: string
    readonly message: string
    readonly tags: Readonly<Record<string, string>>
    readonly from_server: boolean
    readonly time?: number
    readonly account?: string
    readonly batch?: { readonly type?: string }
  }

  export class Client extends EventEmitter {
    readonly user: { nick: string; username: string; host: string }
    readonly connected: boolean
    readonly network: {
      readonly name: string
      readonly cap: { isEnabled(name: string): boolean }
      supports(feature: string): unknown
      isChannelName(name: string): boolean
    }
    readonly connection: EventEmitter & {
      readonly transport?: { readonly incoming_buffer?: Buffer }
      write(line: string): void
      end(data?: string, hadError?: boolean): void
    }
    connect(options: Readonly<Record<string, unknown>>): void
    caseCompare(a: string, b: string): boolean
    caseLower(text: string): string
    quit(message?: string): void
    ping(message?: string): void
  }
}

/** Its TCP or TLS transport. */
declare module 'irc-framework/src/transports/net.js' {
  import type { EventEmitter } from 'node:events'
  import type { Socket } from 'node:net'

  export interface TransportOptions {
    readonly host: string
    readonly port: number
    readonly tls: boolean
    readonly ca?: readonly string[]
    readonly rejectUnauthorized: boolean
  }

  export default class Transport extends EventEmitter {
    options: TransportOptions
    socket: Socket | null
    state: number
    requested_disconnect: boolean
    incoming_buffer: Buffer
    connect(): void
    disposeSocket(): void
    _onSocketCreate(options: TransportOptions, socket: Socket): void
  }
}
