import fs from 'node:fs'
import { readRegularFileSync } from '../../../../kernel/kit/read-file.js'
import { Fault } from '../../../../kernel/plugin.js'
import { recoverFile, succeeds, takeName, takenName } from '../../files/api.js'
import { type Swap, swap } from './swap.js'

/**
 * Replaces a file if it still contains `before`. An editor cannot be locked out, and a plain rename would overwrite a save of a
 * moment ago. So the two files swap places in one step, and the displaced one is checked. {@link recoverFile} undoes an incomplete
 * exchange.
 * @throws Fault `file_changed`; the file then has the content of the other writer
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
  // Between a swap and its reversal readers see the new file. The check first makes that even rarer than a save in these
  // microseconds.
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
  // Swaps the displaced file back. If a still later save is found instead of the new file, that one takes the place.
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
 * Replaces the file on a file system without swaps. The file is missing for a moment: the old one is moved away and checked, and
 * the new one gets the name by a link, which fails if another program has saved meanwhile.
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

/** Checks after an exchange that no editor wrote into the old file, which it may have had open. @throws Fault `file_changed` */
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
  new Fault('file_changed', 409, `another program saved ${file} at the same time; nothing was changed`, {
    next: 'try again',
  })
