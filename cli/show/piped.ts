import { fstatSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { CliFault, usageFault } from '../fault.js'

/** Maximum characters of an input for a prompt. */
const mostCharacters = 1024 * 1024

/**
 * Reads standard input to its end if it is a pipe, a socket or a file. An open pipe without a writer would block for ever:
 * undefined when no input arrives within this number of milliseconds.
 */
export async function pipedText(
  input: Readable & { unref?(): unknown },
  withinMs: number,
): Promise<string | undefined> {
  if (!hasInput()) return undefined
  input.setEncoding('utf8')
  let timer: NodeJS.Timeout | undefined
  const begins = new Promise<boolean>(resolve => {
    timer = setTimeout(() => resolve(false), withinMs)
    for (const event of ['readable', 'end', 'error']) input.once(event, () => resolve(true))
  })
  const began = await begins
  clearTimeout(timer)
  if (!began) {
    input.pause()
    input.unref?.()
    return undefined
  }
  let text = ''
  try {
    for await (const piece of input) {
      text += String(piece)
      if (text.length > mostCharacters)
        throw usageFault(
          `standard input is longer than the ${mostCharacters} characters of a prompt`,
          'svc run --attach <file>',
        )
    }
  } catch (error) {
    if (error instanceof CliFault) throw error
    // A read error ends the input.
  }
  return text
}

function hasInput(): boolean {
  try {
    const found = fstatSync(0)
    return found.isFIFO() || found.isSocket() || found.isFile()
  } catch {
    // Standard input is closed.
    return false
  }
}
