import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

/** What a process of the bench can be asked to do; arguments and results are JSON. */
export type Handlers = Readonly<Record<string, (...args: never[]) => unknown>>

interface Call {
  readonly name: string
  readonly args: readonly unknown[]
}
type Answer = { readonly result: unknown } | { readonly error: string }

/** Runs in the child: answers calls one after the other, and ends when the parent lets go. */
export function answer(handlers: Handlers): void {
  process.on('message', async ({ name, args }: Call) => {
    let reply: Answer
    try {
      reply = { result: await (handlers[name] as (...given: readonly unknown[]) => unknown)(...args) }
    } catch (error) {
      reply = { error: (error as Error).stack ?? String(error) }
    }
    process.send?.(reply)
  })
  process.on('disconnect', () => process.exit(0))
}

/** A process of its own for what is measured, idle between two calls. */
export class Child<H extends Handlers> {
  private constructor(private readonly process: ChildProcess) {}

  /** A source runs under a loader: it reads files that lie beside it. */
  static start<H extends Handlers>(file: string, args: readonly string[] = []): Child<H> {
    return new Child<H>(fork(file, [...args], { execArgv: file.endsWith('.ts') ? ['--import', 'tsx'] : [] }))
  }

  get pid(): number {
    return this.process.pid as number
  }

  async call<N extends keyof H & string>(name: N, ...args: Parameters<H[N]>): Promise<Awaited<ReturnType<H[N]>>> {
    const { promise, resolve, reject } = deferred<Answer>()
    const ended = () => reject(new Error(`the process for ${name} ended`))
    this.process.once('exit', ended)
    this.process.once('message', resolve)
    this.process.send({ name, args } satisfies Call)
    const reply = await promise.finally(() => this.process.off('exit', ended))
    if ('error' in reply) throw new Error(reply.error)
    return reply.result as Awaited<ReturnType<H[N]>>
  }

  /** As a crash would: nothing is closed. */
  async kill(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    this.process.kill('SIGKILL')
    await once(this.process, 'exit')
  }
}

function deferred<T>() {
  let resolve: (value: T) => void = () => {}
  let reject: (error: Error) => void = () => {}
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}
