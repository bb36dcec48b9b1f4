/** The used parts of @xmpp; the packages have no types. */
declare module '@xmpp/client-core' {
  import type { EventEmitter } from 'node:events'

  export interface Element {
    readonly name: string
    readonly attrs: Readonly<Record<string, string>>
    getChild(name: string, xmlns?: string): Element | undefined
    getChildren(name: string, xmlns?: string): Element[]
    getChildElements(): Element[]
    getChildText(name: string, xmlns?: string): string | null
    getNS(): string
    is(name: string, xmlns?: string): boolean
    text(): string
    toString(): string
  }

  export interface Jid {
    readonly local: string
    readonly domain: string
    readonly resource: string
    bare(): Jid
    toString(): string
  }

  type Child = Element | string | undefined | readonly (Element | string | undefined)[]
  export function xml(
    name: string,
    attrs?: Readonly<Record<string, string | undefined>>,
    ...children: readonly Child[]
  ): Element
  export function jid(address: string): Jid

  export interface Socket {
    /** Set for direct TLS. */
    readonly socket?: { destroy(): void; setNoDelay(on: boolean): void } | null
    destroy?(): void
    setNoDelay?(on: boolean): void
  }

  export class Client extends EventEmitter {
    constructor(options: { readonly service: string; readonly domain: string; readonly timeout?: number })
    timeout: number
    readonly status: string
    readonly jid: Jid | null
    readonly parser: { write(text: string): void } | null
    readonly socket: Socket | null
    _onData(data: Buffer | string): void
    isSecure(): boolean
    socketParameters(service: string): Readonly<Record<string, unknown>> | undefined
    sendReceive(element: Element): Promise<Element>
    restart(): Promise<unknown>
    _attachSocket(socket: Socket): void
    start(): Promise<Jid>
    stop(): Promise<unknown>
    send(stanza: Element): Promise<void>
  }
}

declare module '@xmpp/middleware' {
  import type { Client } from '@xmpp/client-core'
  export interface Middleware {
    use(handler: unknown): unknown
  }
  export default function middleware(of: { readonly entity: Client }): Middleware
}

declare module '@xmpp/stream-features' {
  import type { Middleware } from '@xmpp/middleware'
  export interface StreamFeatures {
    use(name: string, xmlns: string, handler: unknown): unknown
  }
  export default function streamFeatures(of: { readonly middleware: Middleware }): StreamFeatures
}

declare module '@xmpp/iq/caller.js' {
  import type { Client, Element } from '@xmpp/client-core'
  import type { Middleware } from '@xmpp/middleware'
  export interface IqCaller {
    request(stanza: Element, timeoutMs?: number): Promise<Element>
  }
  export default function caller(of: { readonly middleware: Middleware; readonly entity: Client }): IqCaller
}

declare module '@xmpp/iq/callee.js' {
  import type { Client } from '@xmpp/client-core'
  import type { Middleware } from '@xmpp/middleware'
  export default function callee(of: { readonly middleware: Middleware; readonly entity: Client }): {
    get(xmlns: string, name: string, handler: () => unknown): void
  }
}

declare module '@xmpp/tcp' {
  import type { Client } from '@xmpp/client-core'
  export default function tcp(of: { readonly entity: Client }): void
}

declare module '@xmpp/tls' {
  import type { Client } from '@xmpp/client-core'
  export default function tls(of: { readonly entity: Client }): void
}

declare module '@xmpp/starttls/starttls.js' {
  import type { ConnectionOptions } from 'node:tls'
  import type { Socket } from '@xmpp/client-core'
  export function canUpgrade(socket: Socket | null): socket is Socket
  export function upgrade(socket: Socket, options: ConnectionOptions): Promise<Socket>
}

declare module 'saslmechanisms' {
  export default class Factory {
    use(mechanism: unknown): this
  }
}

declare module '@xmpp/sasl-plain' {
  import type Factory from 'saslmechanisms'
  export default function plain(factory: Factory): void
}

declare module '@xmpp/sasl-scram-sha-1' {
  import type Factory from 'saslmechanisms'
  export default function scram(factory: Factory): void
}

declare module '@xmpp/sasl' {
  import type { Client } from '@xmpp/client-core'
  import type { StreamFeatures } from '@xmpp/stream-features'
  import type Factory from 'saslmechanisms'

  type Authenticate = (
    credentials: { readonly username: string; readonly password: string },
    mechanism: string,
  ) => Promise<void>

  export default function sasl(
    of: { readonly streamFeatures: StreamFeatures; readonly saslFactory: Factory },
    credentials: (
      authenticate: Authenticate,
      mechanisms: readonly string[],
      fast: unknown,
      entity: Client,
    ) => Promise<void>,
  ): void
}

declare module '@xmpp/resource-binding' {
  import type { IqCaller } from '@xmpp/iq/caller.js'
  import type { StreamFeatures } from '@xmpp/stream-features'
  export default function resourceBinding(
    of: { readonly streamFeatures: StreamFeatures; readonly iqCaller: IqCaller },
    resource: string,
  ): void
}

/** Used by the test clients. */
declare module '@xmpp/client' {
  import type { Client, Element } from '@xmpp/client-core'

  export { type Element, jid, xml } from '@xmpp/client-core'

  export interface XmppClient extends Client {
    readonly reconnect: { stop(): void }
    readonly iqCaller: { request(stanza: Element, timeoutMs?: number): Promise<Element> }
  }

  export function client(options: {
    readonly service: string
    readonly domain: string
    readonly resource?: string
    readonly timeout?: number
    readonly credentials: (
      authenticate: (
        credentials: { readonly username: string; readonly password: string },
        mechanism: string,
      ) => Promise<void>,
      mechanisms: readonly string[],
    ) => Promise<void>
  }): XmppClient
}
