import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CliFault, exitCodes } from './fault.js'
import { Interrupts } from './interrupts.js'
import { run } from './run.js'
import { isAsciiLocale } from './show/ascii.js'
import { terminalOf, typedUnseen } from './show/terminal.js'

/** Time for a command to end by itself after Ctrl-C. */
const interruptMs = 100

/** Saved before a foreground daemon replaces it to keep plugins from exiting. */
const end = process.exit.bind(process)
/** The terminal is gone: restoring it at exit would crash. */
let isHungUp = false
const exit = (code: number) => {
  if (!isHungUp) end(code)
  process.removeAllListeners('SIGHUP')
  process.kill(process.pid, 'SIGHUP')
}
const interrupts = new Interrupts(() => {
  if (controller.signal.aborted) exit(exitCodes.interrupted)
  controller.abort()
  setTimeout(() => exit(exitCodes.interrupted), interruptMs).unref()
})
const controller = new AbortController()
process.on('SIGINT', () => interrupts.interrupt())
/** EPIPE means that the reader has closed the pipe, which is no error. */
const isFailure = ({ code }: NodeJS.ErrnoException) => code !== 'EPIPE'
for (const stream of [process.stdout, process.stderr])
  stream.on('error', error => interrupts.terminate(() => (isFailure(error) ? endUnwritten() : exit(exitCodes.done))))

/** Ends a command whose output is incomplete; its own failure keeps its exit code. */
function endUnwritten(code: number = exitCodes.failed): void {
  const { errored } = process.stdout
  const text = errored ? `error: the output cannot be written: ${errored.message}\n` : ''
  process.stderr.write(text, () => exit(code))
}

/** Installed only when there is something to undo; otherwise signals end the process as usual. */
const listen = () => {
  for (const [name, number] of [
    ['SIGTERM', 15],
    ['SIGHUP', 1],
  ] as const) {
    if (process.listenerCount(name) > 0) continue
    process.on(name, () => {
      isHungUp ||= name === 'SIGHUP' && hasTerminal()
      interrupts.terminate(() => exit(128 + number))
    })
  }
}

const hasTerminal = () => process.stdout.isTTY === true && process.stdin.isTTY === true
const openScreen = async () => {
  const { Screen } = await import('./show/screen.js')
  const screen = new Screen(process.stdin, process.stdout, () => interrupts.interrupt(), isAsciiLocale(process.env))
  process.on('exit', () => screen.close())
  // Without a listener, SIGTERM ends the process without an exit event.
  listen()
  return screen
}

run(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  root: dirname(fileURLToPath(import.meta.url)),
  stdout: process.stdout,
  stderr: process.stderr,
  signal: controller.signal,
  idle: () =>
    new Promise((_, reject) => {
      const text = 'the command ended early: it waits for an event that can no longer occur'
      process.once('beforeExit', () => reject(new CliFault('command_stuck', text)))
    }),
  onInterrupt: (take, options) => {
    if (options?.anyEnd) listen()
    return interrupts.onNext(take, options)
  },
  // Lazy, because opening standard input takes a tenth of a short call.
  get unseen() {
    if (!process.stdin.isTTY) return undefined
    return (prompt: string, signal?: AbortSignal) =>
      typedUnseen(process.stdin, process.stderr, prompt, () => interrupts.interrupt(), signal)
  },
  get terminal() {
    return hasTerminal() ? terminalOf(process.stdin) : undefined
  },
  get keyboard() {
    if (!hasTerminal() || process.env.TERM === 'dumb') return undefined
    return {
      input: process.stdin,
      interrupt: () => interrupts.interrupt(),
      onResize: (take: () => void) => {
        process.stdout.on('resize', take)
        return () => process.stdout.off('resize', take)
      },
      onEnd: (undo: () => void) => {
        // Without a listener, SIGTERM ends the process without an exit event.
        listen()
        process.on('exit', undo)
        return () => process.off('exit', undo)
      },
    }
  },
  get openScreen() {
    return hasTerminal() && process.env.TERM !== 'dumb' ? openScreen : undefined
  },
  stdin: async () => {
    const chunks: Buffer[] = []
    for await (const chunk of process.stdin) chunks.push(chunk)
    return Buffer.concat(chunks).toString('utf8')
  },
  piped: async withinMs => (await import('./show/piped.js')).pipedText(process.stdin, withinMs),
}).then(code => {
  // Deferred, because output still in a pipe would be lost.
  process.exitCode = code
  process.stdout.write('', () => {
    // A failed write is known here before its event.
    const { errored } = process.stdout
    if (errored && isFailure(errored)) endUnwritten(code || exitCodes.failed)
    else process.stderr.write('', () => exit(code))
  })
})
