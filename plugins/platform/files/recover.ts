import fs from 'node:fs'
import path from 'node:path'

/** Where a file stands while it is exchanged for another one. */
export const takenName = (file: string) => path.join(path.dirname(file), `.${path.basename(file)}.taken`)
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK']

/** Gives a file that was taken away its place again, unless somebody saved another one. */
export function recoverFile(name: string): void {
  const file = fs.lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink() ? targetOf(name) : name
  const taken = takenName(file)
  if (!fs.existsSync(taken)) return
  if (fs.existsSync(file) || takeName(taken, file)) fs.rmSync(taken, { force: true })
}

const targetOf = (link: string) => path.resolve(path.dirname(link), fs.readlinkSync(link))

/** Gives a file a name that is free; false where it is not. A file system may have no hard links: then a rename is all there is. */
export const takeName = (from: string, to: string): boolean =>
  succeeds(() => {
    try {
      fs.linkSync(from, to)
    } catch (error) {
      if (!NO_LINKS.includes((error as NodeJS.ErrnoException).code ?? '')) throw error
      fs.renameSync(from, to)
    }
  }, 'EEXIST')

/** False where a call of the file system fails with this code. */
export function succeeds(work: () => void, code: string): boolean {
  try {
    work()
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== code) throw error
    return false
  }
}
