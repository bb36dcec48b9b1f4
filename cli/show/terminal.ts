import type { Readable } from 'node:stream'
import type { CommandTerminal } from '../../kernel/kit/commands/context.js'
import type { Sink } from '../io.js'

/** Input with the terminal's own line editing, which works everywhere and leaves nothing to restore after a kill. */
export function terminalOf(input: Readable): CommandTerminal {
  return {
    now: () => performance.now(),
    onLine(take) {
      let rest = ''
      const more = (text: string) => {
        const lines = (rest + text).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) take(line)
      }
      const end = () => take(undefined)
      input.setEncoding('utf8').on('data', more).on('end', end)
      // The previous question paused the input, and a listener alone does not resume it.
      input.resume()
      // Ctrl-D at an earlier question: its event does not come again.
      const ended = input.readableEnded ? setImmediate(end) : undefined
      return () => {
        clearImmediate(ended)
        input.off('data', more).off('end', end)
        input.pause()
      }
    },
  }
}

const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
const CTRL_U = '\u0015'
const ERASE = ['\u007f', '\b']

/**
 * Reads one line without echo; undefined without a line. In raw mode the terminal neither edits nor sends signals, so both are done
 * here.
 * @param interrupt action for Ctrl-C
 * @param signal ends the reading without a line
 */
export function typedUnseen(
  input: Readable & { setRawMode(on: boolean): unknown },
  output: Sink,
  prompt: string,
  interrupt: () => void,
  signal?: AbortSignal,
): Promise<string | undefined> {
  return new Promise(resolve => {
    let line: string[] = []
    const done = (typed: string | undefined) => {
      signal?.removeEventListener('abort', end)
      input.off('data', more).off('end', end).setRawMode(false)
      input.pause()
      output.write('\n')
      resolve(typed)
    }
    const end = () => done(undefined)
    const more = (text: string) => {
      for (const key of text) {
        if (key === '\r' || key === '\n') return done(line.join(''))
        if (key === CTRL_D && line.length === 0) return done(undefined)
        if (key === CTRL_C) {
          done(undefined)
          return interrupt()
        }
        if (key === CTRL_U) line = []
        else if (ERASE.includes(key)) line.pop()
        else line.push(key)
      }
    }
    // Set before the prompt is shown, so that typed characters are never echoed.
    input.setRawMode(true)
    output.write(prompt)
    input.setEncoding('utf8').on('data', more).on('end', end)
    signal?.addEventListener('abort', end, { once: true })
    input.resume()
  })
}
