import fs from 'node:fs'
import path from 'node:path'

/** Name of a file while it is being exchanged. */
export const takenName = (file: string) => path.join(path.dirname(file), `.${path.basename(file)}.taken`)
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK']

/** Restores a file after an incomplete exchange, unless another one was saved meanwhile. */
export function recoverFile(name: string): void {
  const file = fs.lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink() ? targetOf(name) : name
  const taken = takenName(file)
  if (!fs.existsSync(taken)) return
  if (fs.existsSync(file) || takeName(taken, file)) fs.rmSync(taken, { force: true })
}

const targetOf = (link: string) => path.resolve(path.dirname(link), fs.readlinkSync(link))

/** Renames a file to a free name; false when the name is taken. On file systems without hard links a plain rename has to do. */
export const takeName = (from: string, to: string): boolean =>
  succeeds(() => {
    try {
      fs.linkSync(from, to)
    } catch (error) {
      if (!NO_LINKS.includes((error as NodeJS.ErrnoException).code ?? '')) throw error
      fs.renameSync(from, to)
    }
  }, 'EEXIST')

/** False when a file system call fails with this code. */
export function succeeds(work: () => void, code: string): boolean {
  try {
    work()
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== code) throw error
    return false
  }
}
