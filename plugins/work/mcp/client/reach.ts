import type { Transport } from '@modelcontextprotocol/client'
import { TokenBucket } from '../../../../kernel/kit/rate.js'
import { resolveSecret } from '../../../../kernel/kit/secret-ref.js'
import { wellFormed } from '../../../../kernel/kit/text.js'
import { messageOf, systemClock } from '../../../../kernel/plugin.js'
import { spawnConfined } from '../../../access/sandboxes/api.js'
import { askerOf, ownerOf } from '../../../delivery/extensions/api.js'
import { McpErrors } from '../errors.js'
import type { K } from '../needs.js'
import type { Server, Source } from '../sources/declaration.js'
import { boundedFetch } from './bounded-fetch.js'
import type { Confined } from './confining.js'
import type { StreamOver } from './event-stream.js'
import { type Trouble, troubleOf } from './trouble.js'

/** Variables of the daemon's environment that programs need to run; never the whole environment. */
const PASSED_ON = ['HOME', 'LANG', 'LC_ALL', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'USER']

/** Rate of opened streams of an HTTP server: some servers deliver each answer through a new stream. */
const MOST_STREAMS = { burst: 30, perSecond: 5 }
/** Concurrent answers to requests of an HTTP server; further requests are not answered. */
const MOST_ANSWERS = 64

/** A transport to a server. */
export interface Reached {
  readonly transport: Transport
  /** The reason of its end and its last output, if known; empty: unknown. */
  lastWords(): string
  /** Classifies an error of an HTTP exchange by its effect on the connection. */
  trouble?(error: unknown): Trouble | undefined
  /** Set by the connection: called at the end of an event stream, with `limit` if the stream exceeded one. */
  onStreamOver?: StreamOver
}

/** The identity that resolves a server's secrets: its extension, its workspace, or the operator. */
export function askerFor(kernel: K, { extension, workspaceId }: Source): Pick<K, 'collect' | 'name'> {
  const owner = ownerOf(kernel.needs.extensions.current, extension)
  if (owner) return askerOf(kernel, owner)
  return { collect: kernel.collect, name: workspaceId ? `${kernel.name}/${workspaceId}` : kernel.name }
}

/** Values of a declaration with currently resolved secrets. @throws Fault `mcp_unreachable` naming a missing secret */
export async function valuesOf(
  kernel: K,
  { name, source }: Pick<Server, 'name' | 'source'>,
  plain: Readonly<Record<string, string>> = {},
  secrets: Readonly<Record<string, string>> = {},
): Promise<Record<string, string>> {
  // The asker limits the access to secrets of the server's own workspace or extension.
  const asker = askerFor(kernel, source)
  const all = { ...plain }
  for (const [key, reference] of Object.entries(secrets))
    all[key] = await resolveSecret(asker, reference, `${key} of the MCP server ${name}`)
  return all
}

/** Starts a server, or prepares an HTTP connection. @throws Fault `mcp_unreachable` */
export async function reach(
  kernel: K,
  server: Server,
  confined: Confined | undefined,
  fetchWith: (headers: Readonly<Record<string, string>>, over: StreamOver) => typeof fetch = boundedFetch,
): Promise<Reached> {
  const { declaration, name, source } = server
  const { command, url } = declaration
  try {
    if (url !== undefined) {
      const headers = await valuesOf(kernel, server, declaration.headers, declaration.secret_headers)
      return await overHttp(new URL(url), over => fetchWith(headers, over))
    }
    if (command === undefined) throw new Error('it has neither a command nor a url')
    return await start(kernel, server, [command, ...(declaration.args ?? [])], confined)
  } catch (error) {
    throw McpErrors.mcp_unreachable(`${name} (${source.where}): ${messageOf(error)}`, { cause: error })
  }
}

async function overHttp(url: URL, fetchWith: (over: StreamOver) => typeof fetch): Promise<Reached> {
  const { StreamableHTTPClientTransport, SdkHttpError } = await import('@modelcontextprotocol/client')
  const send = fetchWith(limit => reached.onStreamOver?.(limit))
  const transport = new StreamableHTTPClientTransport(url, { fetch: fewStreams(send) })
  answerFew(transport as Transport)
  receiveWellFormed(transport as Transport)
  const reached: Reached = {
    transport: transport as Transport,
    lastWords: () => '',
    trouble: error => {
      const status = error instanceof SdkHttpError ? error.status : undefined
      return troubleOf(error, status, transport.sessionId !== undefined)
    },
  }
  return reached
}

/**
 * The client reopens an ended stream, even for an abandoned call: a server that ends each stream at once would cause
 * ever more requests. The client gives up a stream after three refusals.
 */
function fewStreams(send: typeof fetch): typeof fetch {
  const streams = new TokenBucket(MOST_STREAMS, systemClock())
  return async (input, init) => {
    if (init?.method === 'GET' && !streams.tryTake(1)) throw new Error('its event streams end too often')
    return send(input, init)
  }
}

/** Repairs unpaired surrogates here, since the library's transport parses messages itself. */
function receiveWellFormed(transport: Transport): void {
  let receive: Transport['onmessage']
  Object.defineProperty(transport, 'onmessage', {
    get: () => receive,
    set: (handler: Transport['onmessage']) => {
      receive = handler && ((message, extra) => handler(wellFormed(message), extra))
    },
  })
}

/** Each answer is a separate request: a server that keeps asking and does not accept answers would pile them up. */
function answerFew(transport: Transport): void {
  const send = transport.send.bind(transport)
  let answering = 0
  transport.send = async (message, options) => {
    if ('method' in message) return send(message, options)
    if (answering >= MOST_ANSWERS) throw new Error(`${MOST_ANSWERS} of its requests are already being answered`)
    answering++
    try {
      await send(message, options)
    } finally {
      answering--
    }
  }
}

async function start(
  kernel: K,
  server: Server,
  argv: readonly string[],
  confined: Confined | undefined,
): Promise<Reached> {
  const passed = PASSED_ON.flatMap(key => (kernel.env[key] === undefined ? [] : [[key, kernel.env[key]] as const]))
  const workspace = kernel.needs.workspaces.get(server.source.workspaceId ?? '')
  const { env: plain, secret_env } = server.declaration
  const env = { ...Object.fromEntries(passed), ...(await valuesOf(kernel, server, plain, secret_env)) }
  const cwd = workspace?.rootDir ?? kernel.home.root
  const request = { label: `MCP server ${server.name}`, argv, env, cwd, stdio: 'pipe' } as const
  const handle = confined
    ? await spawnConfined(kernel, `mcp_${kernel.ids.hex(16)}`, confined, request)
    : await kernel.needs.processes.spawn(request)
  const { ProcessTransport } = await import('./process-transport.js')
  const transport = new ProcessTransport(handle, kernel.clock)
  return { transport, lastWords: () => kernel.redact.text(transport.lastWords) }
}
