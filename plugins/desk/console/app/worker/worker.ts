import { showMessages } from './push.js'
import type { WorkerScope } from './scope.js'

/** The build inserts the files of the shell, and a digest of their contents. */
declare const SHELL: readonly string[]
declare const VERSION: string

const scope = self as unknown as WorkerScope
const PAGE = '/console'
const PREFIX = 'svc-console-'
const CACHE = PREFIX + VERSION
/** Number of cached shells. Open pages of the previous shell still load its parts on demand. */
const KEPT = 2

/**
 * Caches the shell: the page and the built files, which are the same in each installation. API replies never pass through the
 * worker.
 */
async function keepShell(): Promise<void> {
  const cache = await caches.open(CACHE)
  // Bypasses the HTTP cache, except for files with a hash in their name.
  await cache.addAll(SHELL.map(url => new Request(url, { cache: 'no-cache', credentials: 'omit' })))
}

async function forgetOlder(): Promise<void> {
  const older = (await caches.keys()).filter(name => name.startsWith(PREFIX) && name !== CACHE)
  await Promise.all(older.slice(0, Math.max(0, older.length + 1 - KEPT)).map(name => caches.delete(name)))
}

/** The daemon's page, so that an upgrade appears at the next load; without a daemon, the cached page. */
async function page(request: Request): Promise<Response> {
  const reply = await fetch(request).catch(() => undefined)
  if (reply && reply.status < 500) return reply
  const kept = await (await caches.open(CACHE)).match(PAGE)
  return kept ?? reply ?? Response.error()
}

/** A file with a hash in its name never changes. */
async function file(request: Request): Promise<Response> {
  return (await caches.match(request)) ?? fetch(request)
}

scope.addEventListener('install', event => event.waitUntil(keepShell().then(() => scope.skipWaiting())))
scope.addEventListener('activate', event => event.waitUntil(forgetOlder().then(() => scope.clients.claim())))
scope.addEventListener('fetch', event => {
  const { request } = event
  const { origin, pathname } = new URL(request.url)
  if (request.method !== 'GET' || origin !== scope.location.origin) return
  if (request.mode === 'navigate') {
    if (pathname === PAGE || pathname === `${PAGE}/`) event.respondWith(page(request))
  } else if (pathname !== PAGE && SHELL.includes(pathname)) event.respondWith(file(request))
})
showMessages(scope, PAGE)
