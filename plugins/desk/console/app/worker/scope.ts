/** The used parts of `ServiceWorkerGlobalScope`, which TypeScript's types for pages do not include. */
interface Extendable extends Event {
  waitUntil(work: Promise<unknown>): void
}

interface FetchOf extends Extendable {
  readonly request: Request
  respondWith(reply: Promise<Response>): void
}

interface PushOf extends Extendable {
  readonly data: { json(): unknown } | null
}

interface ClickOf extends Extendable {
  readonly notification: Notification
}

interface PageClient {
  readonly url: string
  focus(): Promise<unknown>
  navigate(url: string): Promise<unknown>
}

interface WorkerEvents {
  install: Extendable
  activate: Extendable
  fetch: FetchOf
  push: PushOf
  notificationclick: ClickOf
}

export interface WorkerScope {
  readonly location: Location
  readonly registration: ServiceWorkerRegistration
  readonly clients: {
    claim(): Promise<void>
    matchAll(options: { type: 'window'; includeUncontrolled: boolean }): Promise<readonly PageClient[]>
    openWindow(url: string): Promise<unknown>
  }
  skipWaiting(): Promise<void>
  addEventListener<E extends keyof WorkerEvents>(type: E, handle: (event: WorkerEvents[E]) => void): void
}
