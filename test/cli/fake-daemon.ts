import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import type { CommandData } from '../../cli/commands/command-data.js'
import { describeRoutes } from '../../cli/commands/describe-commands.js'
import { run } from '../../cli/run.js'
import { noContent, ok, routeOf } from '../../kernel/contract/route.js'
import { cli, describe } from '../../kernel/kit/annotations/index.js'
import { queryBoolean, queryInteger } from '../../schemas/kernel/common.js'

/** What the fake daemon was asked. */
export interface Asked {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: unknown
}

export type Answer = (response: ServerResponse, asked: Asked) => void

/** An HTTP server on the socket of a temporary home; answers are given per `METHOD /path`, the query left out. */
export class FakeDaemon {
  /** Without who it is, which the command line asks by itself. */
  readonly asked: Asked[] = []
  version = thingsData.version
  /** What is answered to everything else; undefined: 404. */
  otherwise: Answer | undefined
  readonly #answers = new Map<string, Answer>()
  #server: Server | undefined

  private constructor(readonly home: string) {}

  static async start(): Promise<FakeDaemon> {
    const daemon = new FakeDaemon(mkdtempSync(join(tmpdir(), 'svc-cli-')))
    await daemon.listen()
    return daemon
  }

  answer(route: string, answer: Answer): this {
    this.#answers.set(route, answer)
    return this
  }

  reply(route: string, status: number, body?: unknown): this {
    return this.answer(route, response => {
      response.writeHead(status, body === undefined ? {} : { 'content-type': 'application/json; charset=utf-8' })
      response.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }

  /** One workspace: of this folder, and of no other one. */
  hasWorkspace(id: string, root_dir: string): this {
    const send = (response: ServerResponse, status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body))
    }
    return this.answer('GET /api/workspaces', (response, { url }) => {
      const isHere = new URL(url, 'http://d').searchParams.get('path') === root_dir
      send(response, 200, { workspaces: isHere ? [{ id, root_dir }] : [] })
    }).answer('POST /api/workspaces/place', (response, { body }) => {
      if ((body as { path?: string }).path === root_dir)
        return send(response, 200, { workspace: { id, root_dir }, registered: false })
      const next = 'svc workspace add <dir>'
      return send(response, 409, { error: 'this folder is too wide', code: 'workspace_too_wide', next })
    })
  }

  async listen(): Promise<void> {
    const server = createServer(async (request, response) => {
      response.setHeader('x-not-svc', '1')
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const text = Buffer.concat(chunks).toString()
      const { method = '', url = '', headers } = request
      const asked = { method, url, headers, body: text === '' ? undefined : JSON.parse(text) }
      const identity = url === '/api/status/identity' && !this.#answers.has(`GET ${url}`)
      if (identity) return response.end(JSON.stringify({ daemon: { version: this.version } }))
      this.asked.push(asked)
      const answer = this.#answers.get(`${method} ${url.split('?')[0]}`) ?? this.otherwise
      if (answer) return answer(response, asked)
      response.writeHead(404, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: `no route ${method} ${url}`, code: 'route_not_found' }))
    })
    this.#server = server
    await new Promise<void>(resolve => server.listen(join(this.home, 'daemon.sock'), resolve))
  }

  /** Cuts every connection and stops listening; the home stays. */
  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    server?.closeAllConnections()
    if (server) await new Promise(resolve => server.close(resolve))
  }

  async remove(): Promise<void> {
    await this.stop()
    rmSync(this.home, { recursive: true, force: true })
  }
}

/** What a command line left behind. */
export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly columns?: number
  readonly tty?: boolean
  readonly stdin?: string
  /** Lines that are typed, one for each that is asked for. */
  readonly typed?: readonly string[]
  readonly cwd?: string
  /** Default: the home. */
  readonly root?: string
  readonly data?: CommandData
  readonly signal?: AbortSignal
  readonly onOutput?: (text: string) => void
  readonly probe?: { readonly everyMs: number; readonly withinMs: number }
  /** Default: 10,000; a machine with much other work answers late. */
  readonly candidatesMs?: number
}

/** Runs a command line in this process against a home. */
export async function runCli(home: string, argv: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const written = { stdout: '', stderr: '' }
  const sink = (name: 'stdout' | 'stderr') => ({
    isTTY: options.tty,
    columns: options.columns,
    write: (text: string) => {
      written[name] += text
      options.onOutput?.(text)
    },
  })
  const lines = [...(options.typed ?? [])]
  const onLine = (take: (line: string | undefined) => void) => {
    setImmediate(() => take(lines.shift()))
    return () => {}
  }
  const code = await run(argv, {
    env: { SVC_HOME: home, ...options.env },
    cwd: options.cwd ?? home,
    root: options.root ?? home,
    stdout: sink('stdout'),
    stderr: sink('stderr'),
    stdin: async () => options.stdin ?? '',
    signal: options.signal ?? new AbortController().signal,
    data: options.data ?? thingsData,
    ...(options.typed && { terminal: { now: () => performance.now(), onLine } }),
    ...(options.probe && { probe: options.probe }),
    candidatesMs: options.candidatesMs ?? 10_000,
  })
  return { code, ...written }
}

const route = routeOf<unknown>(describe('Things'))
const thing = v.object({ id: v.string() })
const handle = () => ok({ id: '' })

/** Routes with one of everything that a command can be made of. */
export const thingRoutes = [
  route({
    method: 'GET',
    path: '/api/things',
    summary: 'List things',
    query: v.object({
      state: v.optional(v.picklist(['open', 'closed'])),
      limit: v.optional(queryInteger(0)),
      deep: v.optional(queryBoolean()),
    }),
    replies: { 200: thing },
    with: [
      cli('thing list', {
        view: {
          rows: 'things',
          columns: [
            { header: 'id', path: 'id' },
            { header: 'state', path: 'state' },
            { header: 'size', path: 'size', as: 'bytes' },
            { header: 'made', path: 'created_at', as: 'ago' },
            { header: 'note', path: 'note' },
          ],
          empty: 'no things yet',
        },
      }),
    ],
    handle,
  }),
  route({
    method: 'POST',
    path: '/api/things',
    summary: 'Make a thing',
    body: v.strictObject({
      root: v.string(),
      name: v.string(),
      kind: v.optional(v.picklist(['a', 'b'])),
      tags: v.optional(v.array(v.string())),
      count: v.nullish(v.pipe(v.number(), v.integer())),
      settings: v.optional(v.object({ deep: v.boolean() })),
      messageId: v.optional(v.string()),
      message_id: v.optional(v.string()),
    }),
    replies: { 201: thing },
    with: [
      cli('thing make', {
        args: [{ name: 'root', type: 'path', default: '.' }],
        view: {
          item: 'thing',
          fields: [
            { header: 'id', path: 'id' },
            { header: 'made', path: 'created_at', as: 'time' },
          ],
        },
      }),
    ],
    handle: () => ({ status: 201 as const, body: { id: '' } }),
  }),
  route({
    method: 'DELETE',
    path: '/api/things/{id}',
    summary: 'Remove a thing',
    replies: { 204: null },
    with: [cli('thing remove', { done: 'thing {id} removed' })],
    handle: noContent,
  }),
  route({
    method: 'GET',
    path: '/api/places/{place_id}/things/{id}/parts',
    summary: 'Parts of a thing',
    replies: { 200: thing },
    with: [
      cli('thing parts list', {
        find: { place_id: { path: '/api/things/{id}/owner', pick: 'owner.place_id' } },
        follow: { path: '/api/places/{place_id}/things/{id}/stream', query: { frames: 'raw' } },
        view: {
          rows: 'parts',
          columns: [
            { header: 'no', path: 'sequence' },
            { header: 'text', path: 'text' },
          ],
        },
      }),
    ],
    handle,
  }),
  route({
    method: 'GET',
    path: '/api/things/{id}/text',
    summary: 'Text of a thing',
    replies: { 200: thing },
    with: [cli('thing text', { view: { text: 'text' } })],
    handle,
  }),
  route({
    method: 'GET',
    path: '/api/places/{place_id}/things',
    summary: 'Things of the place that is meant here',
    replies: { 200: thing },
    with: [cli('thing here', { args: [{ name: 'place_id', optional: true }], workspace: 'place_id' })],
    handle,
  }),
]

export const thingsData: CommandData = { version: '1.2.3', routes: describeRoutes(thingRoutes), commands: [] }
