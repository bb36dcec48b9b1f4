import { backoff } from '../../../../kernel/kit/backoff.js'
import { clip, parseJson } from '../../../../kernel/kit/text.js'
import { messageOf } from '../../../../kernel/plugin.js'
import { keep, OutputEnd, type ProcessHandle, readLines } from '../../../platform/processes/api.js'
import type { HookPayload } from '../api.js'
import type { DeclaredHook } from '../declared.js'
import type { K } from '../needs.js'
import type { Cutoff } from './cutoff.js'
import { type Program, startHook } from './launch.js'

/** Limits: bytes per answer line, pending requests, unread input bytes, consecutive invalid lines, bytes of standard error kept. */
const LINE = 64 * 1024
const ASKED = 64
const UNREAD = 4 * 1024 * 1024
const JUNK = 20
const COMPLAINT = 1000
const STOP = { graceMs: 100, termMs: 500 }

type State =
  /** Not running; restarted no earlier than `until` (monotonic clock). */
  | { readonly status: 'resting'; readonly until: number; readonly why: string }
  | { readonly status: 'starting'; readonly ready: Promise<Running> }
  | { readonly status: 'running'; readonly running: Running }
  | { readonly status: 'closed' }

interface Running {
  readonly handle: ProcessHandle
  readonly waiting: Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>
}

/**
 * A warm hook program. Each request is a line `{"id":1,"event":…,"payload":{…}}`, each answer a line
 * `{"id":1,"patch":{…}}`, in any order. It is started on the first request and restarted with back-off after a failure.
 */
export class WarmProgram {
  #state: State = { status: 'resting', until: Number.NEGATIVE_INFINITY, why: '' }
  #failures = 0
  #nextId = 1

  constructor(
    private readonly kernel: K,
    private readonly hook: DeclaredHook,
    private readonly program: Program,
  ) {}

  /** Sends a request and returns the patch. When the cutoff comes first, the program is unresponsive and is stopped. */
  async ask(payload: HookPayload, cutoff: Cutoff): Promise<unknown> {
    const running = await this.#ready()
    cutoff.check()
    const { handle, waiting } = running
    if (waiting.size >= ASKED) throw new Error(`${ASKED} requests are already waiting for the program`)
    if (handle.stdin.writableLength > UNREAD) throw new Error('the program does not read its standard input')
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      const late = () => this.#fail(running, 'the program did not answer within the timeout')
      const settle = () => {
        waiting.delete(id)
        cutoff.tell(undefined)
      }
      waiting.set(id, {
        resolve: answer => {
          settle()
          resolve(answer)
        },
        reject: error => {
          settle()
          reject(error)
        },
      })
      cutoff.tell(late)
      handle.stdin.write(`${JSON.stringify({ id, event: this.hook.event, payload })}\n`)
    })
  }

  /** Stops the program and refuses further requests. */
  async close(): Promise<void> {
    const before = this.#state
    this.#state = { status: 'closed' }
    const running =
      before.status === 'running'
        ? before.running
        : before.status === 'starting' && (await before.ready.catch(() => undefined))
    if (running) await this.#end(running, 'the hook was removed')
  }

  #ready(): Promise<Running> | Running {
    const state = this.#state
    switch (state.status) {
      case 'running':
        return state.running
      case 'starting':
        return state.ready
      case 'closed':
        throw new Error('the hook was removed')
      case 'resting': {
        if (this.kernel.clock.monotonic() < state.until)
          throw new Error(`the program failed and is in restart back-off: ${state.why}`)
        const ready = this.#start()
        this.#state = { status: 'starting', ready }
        return ready
      }
    }
  }

  async #start(): Promise<Running> {
    try {
      const handle = await startHook(this.kernel, this.hook, this.program, this.hook.workspaceId, 1)
      const running: Running = { handle, waiting: new Map() }
      this.#listen(running)
      if (this.#state.status === 'starting') this.#state = { status: 'running', running }
      return running
    } catch (error) {
      this.#rest(messageOf(error))
      throw error
    }
  }

  #listen(running: Running): void {
    const { handle } = running
    const complaint = keep(handle.stderr, new OutputEnd(COMPLAINT))
    let odd = ''
    handle.stdin.on('error', () => {})
    const read = readLines(handle.stdout, {
      ...{ owner: this.hook.owner || this.kernel.name, lineBytes: LINE, junk: JUNK },
      take: line => {
        const isAnswer = this.#answered(running, line)
        if (!isAnswer) odd = clip(line, 200)
        return isAnswer
      },
    })
    read.catch(error =>
      this.#fail(running, `the program prints invalid answer lines: ${messageOf(error)}${odd && `: ${odd}`}`),
    )
    void handle.exited.then(({ code, signal }) => {
      const said = complaint.lines().trim()
      this.#fail(running, `the program ended with ${signal ?? `exit code ${code}`}${said && `: ${said}`}`)
    })
  }

  /** Whether the line answers a pending request. */
  #answered({ waiting }: Running, line: string): boolean {
    let message: { readonly id?: unknown; readonly patch?: unknown; readonly error?: unknown } | null
    try {
      message = parseJson(line) as typeof message
    } catch {
      return false
    }
    const pending = waiting.get(message?.id as number)
    if (!message || !pending) return false
    // Many JSON libraries write an absent member as null.
    if (message.error === undefined || message.error === null) {
      this.#failures = 0
      pending.resolve(message.patch)
    } else pending.reject(new Error(clip(String(message.error), 1000)))
    return true
  }

  #fail(running: Running, why: string): void {
    if (this.#state.status === 'running' && this.#state.running === running) this.#rest(why)
    void this.#end(running, why)
  }

  #rest(why: string): void {
    if (this.#state.status === 'closed') return
    const { clock, ids } = this.kernel
    this.#failures++
    // No delay after the first failure: a single event may have caused it.
    const pause = this.#failures === 1 ? 0 : backoff(this.#failures, () => ids.random())
    this.#state = { status: 'resting', until: clock.monotonic() + pause, why }
  }

  async #end({ handle, waiting }: Running, why: string): Promise<void> {
    for (const { reject } of [...waiting.values()]) reject(new Error(why))
    await handle.stop(STOP).catch(error => {
      this.kernel.log.warn('a hook program does not stop', { hook: this.hook.name, error: messageOf(error) })
    })
  }
}
