import { signal } from '@preact/signals'
import type { Operations, routes } from '../../../../../client/operations.js'

type Routes = typeof routes
/** The operations of the API by method and path. Only types are taken from the client, so none of its code is in the page. */
type ByRoute = {
  [N in keyof Routes & keyof Operations as `${Routes[N]['method']} ${Routes[N]['path']}`]: Operations[N]
}
export type RouteName = keyof ByRoute
type InputOf<R extends RouteName> = ByRoute[R] extends { input: infer I } ? I : never
export type ReplyOf<R extends RouteName> = ByRoute[R] extends { replies: infer S } ? S[keyof S] : never
type Arguments<I> =
  Record<never, never> extends I ? [input?: I, signal?: AbortSignal] : [input: I, signal?: AbortSignal]

/** An error reply, or a request without a reply (status 0). */
export class ApiFault extends Error {
  constructor(
    message: string,
    readonly code: string,
    readonly status: number,
    readonly next?: string,
    /** The reply body, for errors with additional members. */
    readonly body?: unknown,
  ) {
    super(message)
  }
}

const KEY = 'svc.console.key'

/** Whether the browser has a session, by the key in the local storage: scripts cannot read the cookie. */
export const signedIn = signal(localStorage.getItem(KEY) !== null)

/** Headers of every request. A page of another origin cannot send them and does not have the key. */
export const ownHeaders = (): Record<string, string> => ({ 'x-svc-console': localStorage.getItem(KEY) ?? '' })

export function forgetSession(): void {
  localStorage.removeItem(KEY)
  signedIn.value = false
}

/** Exchanges the code of a link for a session. */
export async function signIn(code: string): Promise<void> {
  const reply = await send('POST', '/api/console/sessions', { body: { code } }, {})
  const { key } = (await reply.json()) as { key: string }
  localStorage.setItem(KEY, key)
  signedIn.value = true
}

export async function signOut(): Promise<void> {
  await api('DELETE /api/console/sessions/{id}', { path: { id: 'current' } }).catch(() => {})
  forgetSession()
}

/** Another tab has signed in or out. */
addEventListener('storage', ({ key, newValue }) => {
  if (key === KEY) signedIn.value = newValue !== null
})

interface Input {
  readonly path?: Readonly<Record<string, unknown>>
  readonly query?: Readonly<Record<string, unknown>> | undefined
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined
  readonly body?: unknown
}

/** Calls an operation by method and path template: `api('GET /api/tasks/{id}', { path: { id } })`. */
export async function api<R extends RouteName>(
  route: R,
  ...[input, signal]: Arguments<InputOf<R>>
): Promise<ReplyOf<R>> {
  const [method = '', template = ''] = route.split(' ')
  const { path = {}, query = {}, headers, body } = (input ?? {}) as Input
  const url = urlOf(template, path, query)
  const reply = await send(method, url, { headers, body }, { ...(signal && { signal }) })
  if (reply.status === 204) return undefined as ReplyOf<R>
  return (await reply.json()) as ReplyOf<R>
}

/** Sends a delivery to a webhook like an external program: with its own headers and without the browser's session. */
export async function deliver(path: string, headers: Readonly<Record<string, string>>, body: string): Promise<unknown> {
  const reply = await fetch(path, { method: 'POST', headers, body, credentials: 'omit', cache: 'no-store' }).catch(
    () => {
      throw unreachable()
    },
  )
  if (!reply.ok) throw await faultOf(reply)
  return reply.json()
}

/** The bytes of a reply, for a download, because a link cannot send the session's headers. */
export async function apiBlob(url: string): Promise<Blob> {
  return (await send('GET', url, {}, {})).blob()
}

export function urlOf(
  template: string,
  path: Readonly<Record<string, unknown>>,
  query: Readonly<Record<string, unknown>>,
): string {
  const filled = template.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(String(path[name] ?? '')))
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))
  return pairs.length === 0 ? filled : `${filled}?${search}`
}

async function send(method: string, url: string, { headers = {}, body }: Input, more: RequestInit): Promise<Response> {
  const sent = body === undefined ? {} : { 'content-type': 'application/json' }
  const given = Object.entries(headers).filter((pair): pair is [string, string] => pair[1] !== undefined)
  const reply = await fetch(url, {
    method,
    headers: {
      accept: 'application/json',
      ...(url === '/api/console/sessions' ? {} : ownHeaders()),
      ...Object.fromEntries(given),
      ...sent,
    },
    credentials: 'same-origin',
    cache: 'no-store',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...more,
  }).catch(error => {
    if (more.signal?.aborted) throw error
    throw unreachable()
  })
  if (reply.ok) return reply
  throw await faultOf(reply)
}

const unreachable = () => new ApiFault('The daemon does not answer.', 'unreachable', 0, 'svc daemon start')

/**
 * The fault of an error reply. Only the error of an ended session signs the browser out: a daemon that starts or stops cannot
 * find its sessions for a moment and answers 401, too.
 */
export async function faultOf(reply: Response): Promise<ApiFault> {
  const body = (await reply.json().catch(() => ({}))) as {
    // Tool replies contain an object instead.
    error?: string | { message?: string; code?: string }
    code?: string
    details?: { next?: string }
  }
  if (body.code === 'console_session_ended') forgetSession()
  const said = typeof body.error === 'object' ? body.error : { message: body.error, code: body.code }
  const { message = `The daemon answered with ${reply.status}.`, code = 'unknown' } = said
  return new ApiFault(message, code, reply.status, body.details?.next, body)
}

export const faultText = (error: unknown): string => (error instanceof Error ? error.message : String(error))
