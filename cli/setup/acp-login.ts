import { spawn } from 'node:child_process'
import { readLines } from '../../plugins/platform/processes/output/lines.js'

/** Time limits in milliseconds: for the agent's list of login methods, and for a person to log in. */
const HELLO_MS = 60_000
const LOGIN_MS = 15 * 60_000
const MAX_METHODS = 20
/** Maximum bytes of a line, and consecutive lines without a message. */
const MAX_LINE = 1024 * 1024
const MAX_JUNK = 1000

/** A login method that an agent offers. */
export interface LoginMethod {
  readonly id: string
  readonly name: string
  readonly description?: string
  /** Arguments and variables for a login in the terminal; undefined: the agent performs the login itself. */
  readonly terminal?: { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> }
}

type Json = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null

/** An agent process started for a login. */
export class AgentLogin {
  #id = 0
  readonly #waiting = new Map<number, (message: Json) => void>()
  readonly #child
  /** Rejects when the program ends. */
  readonly #ended: Promise<never>

  constructor(file: string, words: readonly string[], env: NodeJS.ProcessEnv, signal: AbortSignal) {
    // Its messages for the person, such as a URL, go to stderr.
    this.#child = spawn(file, [...words], { stdio: ['pipe', 'pipe', 'inherit'], env: { ...env }, signal })
    const { stdin, stdout } = this.#child
    stdin.on('error', () => {})
    const read = readLines(stdout, {
      ...{ owner: 'login', lineBytes: MAX_LINE, junk: MAX_JUNK },
      take: line => this.#take(line),
    })
    this.#ended = new Promise((_, reject) => {
      read.catch(error => {
        this.end()
        reject(new Error(`its program is not an ACP agent: ${(error as Error).message}`))
      })
      this.#child.once('error', reject)
      this.#child.once('close', (code, by) => reject(new Error(`its program ended (${by ?? code})`)))
    })
    this.#ended.catch(() => {})
  }

  /** The offered login methods. Throws an error with the reason for a missing reply. */
  async methods(): Promise<readonly LoginMethod[]> {
    const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, auth: { terminal: true } }
    const params = { protocolVersion: 1, clientInfo: { name: 'svc', version: '1' }, clientCapabilities }
    const { authMethods } = await this.#ask('initialize', params, HELLO_MS)
    return (Array.isArray(authMethods) ? authMethods : []).slice(0, MAX_METHODS).flatMap(methodOf)
  }

  /** Resolves when the agent reports a successful login; throws its refusal. */
  async authenticate({ id }: LoginMethod): Promise<void> {
    await this.#ask('authenticate', { methodId: id }, LOGIN_MS)
  }

  end(): void {
    this.#child.kill()
  }

  async #ask(method: string, params: object, ms: number): Promise<Json> {
    const id = ++this.#id
    const answer = new Promise<Json>(resolve => this.#waiting.set(id, resolve))
    this.#send({ id, method, params })
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(reject, ms, new Error(`${method}: no answer within ${ms / 1000} s`))
    })
    const { error, result } = await Promise.race([answer, late, this.#ended]).finally(() => clearTimeout(timer))
    if (isObject(error)) throw new Error(`${method}: ${String(error.message ?? 'it refused')}`)
    return isObject(result) ? result : {}
  }

  #send(message: object): void {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }

  /** Whether a line is a message. */
  #take(line: string): boolean {
    let message: unknown
    try {
      message = JSON.parse(line)
    } catch {
      return false
    }
    if (!isObject(message)) return false
    const { id, method } = message
    // Requests of the agent are refused, because this process only performs the login.
    if (method !== undefined) {
      if (typeof id === 'number') this.#send({ id, error: { code: -32601, message: 'Method not found' } })
      return true
    }
    const answer = this.#waiting.get(id as number)
    this.#waiting.delete(id as number)
    answer?.(message)
    return answer !== undefined
  }
}

function methodOf(value: unknown): LoginMethod[] {
  if (!isObject(value)) return []
  const { id, name, description, type, args, env } = value
  if (typeof id !== 'string' || id === '') return []
  const isText = (text: unknown) => typeof text === 'string'
  const words = (Array.isArray(args) ? args : []).filter(isText).map(String)
  const pairs = Object.entries(isObject(env) ? env : {}).flatMap(([key, text]) =>
    isText(text) ? [[key, `${text}`]] : [],
  )
  return [
    {
      id,
      name: typeof name === 'string' && name !== '' ? name : id,
      ...(typeof description === 'string' && { description }),
      ...(type === 'terminal' && { terminal: { args: words, env: Object.fromEntries(pairs) } }),
    },
  ]
}
