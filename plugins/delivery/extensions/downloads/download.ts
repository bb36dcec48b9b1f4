import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { pipeline, type Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { wholeOf } from '../../../../kernel/kit/whole.js'
import { messageOf } from '../../../../kernel/plugin.js'
import { isLoopback, judge, lookupFor } from './addresses.js'
import { DownloadError, type DownloadReply, type DownloadRules } from './rules.js'

const MAX_REDIRECTS = 5
const DECODERS: Readonly<Record<string, () => NodeJS.ReadWriteStream>> = {
  gzip: createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/**
 * Whether a redirect is allowed: to https, to the same origin, and on this machine. Plain http elsewhere could be
 * modified in transit.
 */
export function mayLeadTo(first: URL, next: URL): boolean {
  if (next.protocol === 'https:' || next.origin === first.origin) return ['https:', 'http:'].includes(next.protocol)
  return next.protocol === 'http:' && isLoopback(first.hostname) && isLoopback(next.hostname)
}

/**
 * Downloads an address over at most five redirects. Each address is checked before the request and again on connection.
 * @throws DownloadError
 */
export function download(first: URL, rules: DownloadRules): Promise<Buffer> {
  return bounded(first, rules, async signal => {
    let url = first
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      const { status, headers, body } = await send(url, {}, rules, signal)
      if (status >= 200 && status < 300) return body
      const location = headers.get('location')
      if (status === 404 || status === 410) throw new DownloadError('not_found', `${url.href} does not exist`)
      if (status < 300 || status >= 400 || location === null)
        throw new DownloadError('unreachable', `${url.host} answers ${status}`)
      const next = URL.canParse(location, url.href) ? new URL(location, url) : undefined
      if (!next || !mayLeadTo(first, next) || next.username || next.password)
        throw new DownloadError(
          'insecure',
          `${url.host} redirects to ${next?.host ?? 'no address'}, which is less secure`,
        )
      url = next
    }
    throw new DownloadError('unreachable', `${first.host} redirects too often`)
  })
}

/** Sends one request; redirects are not followed. @throws DownloadError */
export function exchange(url: URL, init: RequestInit, rules: DownloadRules): Promise<DownloadReply> {
  return bounded(url, rules, signal => send(url, init, rules, signal))
}

async function bounded<T>(
  { host }: URL,
  { clock, timeoutMs }: DownloadRules,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const tooLate = new DownloadError('timeout', `${host} did not send it within ${timeoutMs} ms`)
  const timer = clock.timeout(timeoutMs, () => controller.abort(tooLate))
  try {
    // A DNS lookup cannot be aborted, so the result is awaited only until the timeout.
    const late = new Promise<never>((_, reject) => controller.signal.addEventListener('abort', () => reject(tooLate)))
    return await Promise.race([work(controller.signal), late])
  } catch (error) {
    if (error instanceof DownloadError) throw error
    throw new DownloadError('unreachable', `${host}: ${messageOf((error as { cause?: unknown }).cause ?? error)}`)
  } finally {
    timer.cancel()
    controller.abort()
  }
}

async function send(
  url: URL,
  init: RequestInit,
  { named, lookup, maxBytes }: DownloadRules,
  signal: AbortSignal,
): Promise<DownloadReply> {
  await judge(url, named, lookup)
  const { method, headers, body } = new Request(url.href, { ...init, redirect: 'manual' })
  const bytes = body && Buffer.from(await new Response(body).arrayBuffer())
  const request = url.protocol === 'https:' ? requestHttps : requestHttp
  const reply = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = { 'user-agent': 'svc', 'accept-encoding': 'identity', ...Object.fromEntries(headers) }
    const options = { method, headers: sent, lookup: lookupFor(url, named, lookup), signal, agent: false }
    request(url, options, resolve)
      .on('error', reject)
      .end(bytes ?? undefined)
  })
  const { statusCode: status = 502, statusMessage: statusText = '' } = reply
  const headerEntries = Object.entries(reply.headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  )
  return { status, statusText, headers: new Headers(headerEntries), body: await read(reply, maxBytes) }
}

/** The limit applies to decoded bytes, so that compression cannot exceed it. */
async function read(reply: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const tooLarge = () => new DownloadError('too_large', `more than ${maxBytes} bytes`)
  if (Number(reply.headers['content-length']) > maxBytes) {
    reply.destroy()
    throw tooLarge()
  }
  const decoder = DECODERS[reply.headers['content-encoding'] ?? '']?.()
  const stream = (decoder ? pipeline(reply, decoder, () => {}) : reply) as Readable
  return wholeOf(stream, maxBytes, tooLarge)
}
