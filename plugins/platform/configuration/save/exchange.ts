import fs from 'node:fs'
import { readRegularFileSync } from '../../../../kernel/kit/read-file.js'
import { Fault } from '../../../../kernel/plugin.js'
import { recoverFile, succeeds, takeName, takenName } from '../../files/api.js'
import { type Swap, swap } from './swap.js'

/**
 * Puts a file in the place of another one, if that still says `before`. Nothing locks out an editor, and a plain rename would
 * replace whatever it saved a moment ago: so the two swap places, in one step, and what was displaced is looked at.
 * {@link recoverFile} undoes half an exchange.
 * @throws Fault `file_changed`; the file is then what somebody else saved
 */
export function exchange(
  temporary: string,
  file: string,
  before: string,
  maxBytes: number,
  swapped: Swap = swap,
): void {
  const taken = takenName(file)
  fs.rmSync(taken, { force: true })
  // Who looks between a swap and the one that undoes it sees ours: that must be rarer still than a save in these microseconds.
  if ((textOf(file, maxBytes) ?? '') !== before) throw changed(file)
  fs.renameSync(temporary, taken)
  const ours = textOf(taken, maxBytes)
  if (!swapped(taken, file)) {
    fs.renameSync(taken, temporary)
    exchangeApart(temporary, file, before, maxBytes)
    return
  }
  const displaced = textOf(taken, maxBytes)
  if (displaced === before) return
  // It gets its place again. What is found there instead of ours was saved later still, and gets it then.
  for (let put = ours, next = displaced; swapped(taken, file); ) {
    const found = textOf(taken, maxBytes)
    if (found === put) {
      fs.rmSync(taken)
      throw changed(file)
    }
    put = next
    next = found
  }
  recoverFile(file)
  throw changed(file)
}

/**
 * The same where files cannot swap places, with a moment in which there is none: the old file is taken away first, what was taken
 * is looked at, and the new one gets the name by a link, which fails where somebody saved meanwhile.
 */
function exchangeApart(temporary: string, file: string, before: string, maxBytes: number): void {
  const taken = takenName(file)
  const isThere = succeeds(() => fs.renameSync(file, taken), 'ENOENT')
  if ((isThere ? textOf(taken, maxBytes) : '') !== before) {
    recoverFile(file)
    throw changed(file)
  }
  const isNew = takeName(temporary, file)
  fs.rmSync(isNew ? temporary : taken, { force: true })
  if (!isNew) throw changed(file)
}

/** After an exchange: an editor that had the old file open may have written into it. @throws Fault `file_changed` */
export function settle(file: string, before: string, maxBytes: number): void {
  const taken = takenName(file)
  if (!fs.existsSync(taken)) return
  const isSame = textOf(taken, maxBytes) === before
  if (isSame) fs.rmSync(taken, { force: true })
  else fs.renameSync(taken, file)
  if (!isSame) throw changed(file)
}

const textOf = (file: string, maxBytes: number) => readRegularFileSync(file, { maxBytes, links: 'refuse' })?.toString()

const changed = (file: string) =>
  new Fault('file_changed', 409, `somebody else saved ${file} at the same moment; nothing was changed`, {
    next: 'try again',
  })
