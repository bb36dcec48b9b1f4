import { setTimeout as sleep } from 'node:timers/promises'
import type { Io, Sink } from './io.js'
import { Output } from './show/output.js'

/** Poll interval in milliseconds. */
const EVERY_MS = 1000
const HOME = '\x1b[H'
const CLEAR_LINE = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'

/**
 * Repeats a request until the caller interrupts. On a terminal each reply replaces the one before, cut to the screen; elsewhere
 * only changed replies are printed.
 */
export async function watchReplies(
  ask: () => Promise<unknown>,
  show: (reply: unknown, out: Output) => void,
  { io, out }: { readonly io: Io; readonly out: Output },
): Promise<void> {
  const { stdout, env, signal } = io
  const isScreen = stdout.isTTY === true && env.TERM !== 'dumb' && out.mode === 'human'
  let shown: string | undefined
  let text = ''
  const frame = new Output(
    {
      env,
      stderr: io.stderr,
      stdout: lookalike(stdout, more => {
        text += more
      }),
    },
    out.mode,
    out.quiet,
  )
  if (isScreen) stdout.write(`${HOME}${CLEAR_BELOW}`)
  while (!signal.aborted) {
    const reply = await ask()
    const found = JSON.stringify(reply)
    if (isScreen || found !== shown) {
      text = ''
      show(reply, frame)
      stdout.write(isScreen ? drawn(text, stdout.rows || undefined) : text)
    }
    shown = found
    await sleep(EVERY_MS, undefined, { signal }).catch(() => {})
  }
}

/** A sink with the width and colours of another one. */
function lookalike(sink: Sink, write: (text: string) => void): Sink {
  return {
    write,
    isTTY: sink.isTTY,
    get columns() {
      return sink.columns
    },
  }
}

/** A text drawn over the screen, without its last line, whose line break would scroll the terminal. */
function drawn(text: string, rows = 24): string {
  const lines = text.replace(/\n$/, '').split('\n')
  const fits = lines.length < rows ? lines : [...lines.slice(0, rows - 2), '…']
  return `${HOME}${fits.map(line => `${line}${CLEAR_LINE}\n`).join('')}${CLEAR_BELOW}`
}
