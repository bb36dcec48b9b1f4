import type { Readable } from 'node:stream'
import type { CommandTerminal } from '../../kernel/kit/commands/context.js'
import type { Sink } from '../io.js'

/** The terminal's own line editing: it works everywhere, and nothing has to be put back when the command is killed. */
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
      // The question before has paused it, which a listener alone does not undo.
      input.resume()
      return () => {
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
 * One line that the terminal does not show; undefined when there is none. In raw mode it edits no line and makes no signals, so
 * that is done here.
 * @param interrupt what Ctrl-C is to do
 */
export function typedUnseen(
  input: Readable & { setRawMode(on: boolean): unknown },
  output: Sink,
  prompt: string,
  interrupt: () => void,
): Promise<string | undefined> {
  return new Promise(resolve => {
    let line: string[] = []
    const done = (typed: string | undefined) => {
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
    // Before anything is shown: what is typed from then on is not.
    input.setRawMode(true)
    output.write(prompt)
    input.setEncoding('utf8').on('data', more).on('end', end)
    input.resume()
  })
}
