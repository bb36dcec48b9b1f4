import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import type { TelegramServer as Emulator } from 'telegram-test-api/lib/telegramServer.js'
import { freePort } from '../../harness/free-port.js'

const { TelegramServer } = createRequire(import.meta.url)('telegram-test-api/lib/telegramServer.js') as {
  TelegramServer: typeof Emulator
}

export const TOKEN = '666:AAtest-token_1'

type Json = Readonly<Record<string, unknown>>
interface Refusal {
  readonly error_code: number
  readonly description: string
  readonly parameters?: Json
}
interface Waiter {
  readonly give: () => void
  readonly conflict: () => void
}
interface Call {
  readonly method: string
  readonly body: Json
}

/**
 * The Bot API: `telegram-test-api` with what that leaves out of the documentation, offsets, held requests, conflicts, refusals,
 * files and chats.
 */
export class BotApi {
  readonly calls: Call[] = []
  readonly files = new Map<string, Buffer>()
  readonly chats = new Map<string, Json>()
  /** Texts of messages as they read now. */
  readonly texts = new Map<number, string>()
  me: Json = {}
  webhook = ''
  /** Refuses a call; undefined: it is taken. */
  refuse: (call: Call) => Refusal | undefined = () => undefined
  #updates: { readonly update_id: number }[] = []
  #waiting: Waiter | undefined
  #person = 0

  private constructor(
    private readonly emulator: Emulator,
    private readonly server: Server,
  ) {}

  static async start(): Promise<BotApi> {
    const emulator = new TelegramServer({ port: await freePort(), host: '127.0.0.1' })
    await emulator.start()
    const server = createServer()
    const api = new BotApi(emulator, server)
    server.on('request', (request, response) => void api.#serve(request, response))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return api
  }

  get root(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  /** Address of the emulator alone. */
  get bare(): string {
    return this.emulator.config.apiURL
  }

  /** What the bot sent, in its order. */
  get sent(): readonly Json[] {
    return this.calls.filter(({ method }) => method === 'sendMessage').map(({ body }) => body)
  }

  /** A person writes in a private chat, or where `more` says. */
  async write(text: string, more: Json = {}): Promise<void> {
    const ann = { id: 42, first_name: 'Ann', username: 'ann', is_bot: false }
    const message = { botToken: TOKEN, from: ann, chat: { id: 42, type: 'private', first_name: 'Ann' }, text }
    await this.emulator.addUserMessage({ ...message, date: 1_700_000_000 + ++this.#person, ...more } as never)
    this.#waiting?.give()
  }

  /** Any other update. */
  update(update: Json): void {
    this.#updates.push({ update_id: 1_000_000 + ++this.#person, ...update })
    this.#waiting?.give()
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections()
    this.server.close()
    await this.emulator.stop()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '', 'http://x')
    if (pathname.startsWith(`/file/bot${TOKEN}/`)) {
      const bytes = this.files.get(decodeURIComponent(pathname.slice(`/file/bot${TOKEN}/`.length)))
      response.writeHead(bytes ? 200 : 404).end(bytes)
      return
    }
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const body = JSON.parse(Buffer.concat(parts).toString() || '{}') as Json
    const [, token, method = ''] = /^\/bot([^/]+)\/(\w+)$/.exec(pathname) ?? []
    const call = { method, body }
    this.calls.push(call)
    const refusal =
      token === TOKEN ? (this.refuse(call) ?? this.#documented(call)) : { error_code: 401, description: 'Unauthorized' }
    const answer = refusal ? { ok: false, ...refusal } : await this.#answer(call, response)
    if (response.destroyed) return
    response.writeHead(refusal?.error_code ?? 200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }

  /** What the documentation says is refused. */
  #documented({ method, body }: Call): Refusal | undefined {
    const bad = (description: string) => ({ error_code: 400, description: `Bad Request: ${description}` })
    if (method === 'getUpdates' && this.webhook !== '')
      return {
        error_code: 409,
        description:
          "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
      }
    if (method !== 'sendMessage' && method !== 'editMessageText') return undefined
    const text = String(body.text)
    if (text.length > 4096) return bad('message is too long')
    for (const { offset, length } of (body.entities ?? []) as { offset: number; length: number }[])
      if (offset < 0 || length <= 0 || offset + length > text.length) return bad("can't parse entities: out of bounds")
    if (method === 'sendMessage') return undefined
    const before = this.texts.get(Number(body.message_id))
    if (before === undefined) return bad('message to edit not found')
    return before === text
      ? bad('message is not modified: specified new message content and reply markup are exactly the same')
      : undefined
  }

  async #answer({ method, body }: Call, response: ServerResponse): Promise<Json> {
    switch (method) {
      case 'getUpdates':
        return this.#getUpdates(Number(body.offset ?? 0), Number(body.timeout ?? 0), response)
      case 'getFile': {
        const path = String(body.file_id)
        return { ok: true, result: { file_id: path, file_path: path } }
      }
      case 'getChat': {
        const chat = this.chats.get(String(body.chat_id))
        return chat
          ? { ok: true, result: chat }
          : { ok: false, error_code: 400, description: 'Bad Request: chat not found' }
      }
      case 'sendChatAction':
        return { ok: true, result: true }
      case 'deleteWebhook':
        this.webhook = ''
    }
    const reply = await fetch(`${this.bare}/bot${TOKEN}/${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const answer = (await reply.json()) as { result?: Record<string, unknown> }
    if (method === 'getMe') Object.assign(answer.result ?? {}, { is_bot: true }, this.me)
    if (method === 'sendMessage') this.texts.set(Number(answer.result?.message_id), String(body.text))
    if (method === 'editMessageText') this.texts.set(Number(body.message_id), String(body.text))
    return answer
  }

  async #getUpdates(offset: number, seconds: number, response: ServerResponse): Promise<Json> {
    // A newer request ends the one that waits.
    this.#waiting?.conflict()
    this.#collect()
    this.#updates = this.#updates.filter(({ update_id: id }) => id >= offset)
    let isConflict = false
    let waiting: Waiter | undefined
    if (this.#updates.length === 0 && seconds > 0)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, seconds * 1000)
        const end = () => {
          clearTimeout(timer)
          resolve()
        }
        const conflict = () => {
          isConflict = true
          end()
        }
        waiting = { give: end, conflict }
        this.#waiting = waiting
        response.on('close', end)
      })
    if (this.#waiting === waiting) this.#waiting = undefined
    if (!isConflict) this.#collect()
    const description =
      'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running'
    if (isConflict) return { ok: false, error_code: 409, description }
    return { ok: true, result: this.#updates.slice(0, 100) }
  }

  #collect(): void {
    this.#updates.push(...(this.emulator.getUpdates(TOKEN) as { update_id: number }[]))
    this.#updates.sort((a, b) => a.update_id - b.update_id)
  }
}
