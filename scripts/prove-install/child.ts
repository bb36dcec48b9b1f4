// Run by kills.ts: carries out one operation on a home and ends itself with SIGKILL at a call of the disk.
import { createKernel, operator } from '../../kernel/index.js'
import { type Files, systemFiles } from '../../plugins/extensions/install/files.js'
import { type Holder, holderPlugin } from '../../test/plugins/extensions/install/holder.js'
import { type Operation, perform } from './operations.js'

const [home = '', operation = 'start', source = '', at = '0', mutant = ''] = process.argv.slice(2)

let calls = 0
/** Ends the process at the wanted call, which may have come half way. */
async function step(halfWay?: () => Promise<void>): Promise<void> {
  if (++calls !== Number(at)) return
  await halfWay?.()
  process.kill(process.pid, 'SIGKILL')
  await new Promise(() => {})
}

const files: Files = {
  async makeFolder(folder) {
    await step()
    await systemFiles.makeFolder(folder)
  },
  async writeFile(file, bytes, executable) {
    await step(() => systemFiles.writeFile(file, bytes.subarray(0, bytes.length / 2), executable))
    await systemFiles.writeFile(file, bytes, executable)
  },
  async syncFolder(folder) {
    await step()
    await systemFiles.syncFolder(folder)
  },
  async rename(from, to) {
    await step()
    if (mutant === 'copies') await copyFileByFile(from, to)
    else await systemFiles.rename(from, to)
  },
  async remove(target) {
    await step()
    await systemFiles.remove(target)
  },
}

/** What somebody could take for a rename: it must be found out. */
async function copyFileByFile(from: string, to: string): Promise<void> {
  const { cp, mkdir, readdir } = await import('node:fs/promises')
  await mkdir(to)
  for (const name of await readdir(from)) {
    await cp(`${from}/${name}`, `${to}/${name}`, { recursive: true })
    await step()
  }
  await systemFiles.remove(from)
}

let holder: Holder | undefined
const made = (found: Holder) => {
  holder = found
}
const kernel = await createKernel({
  home,
  plugins: [holderPlugin({ files }, made)],
  listen: [],
  env: { PATH: process.env.PATH },
  log: () => {},
})
if (!holder) throw new Error(JSON.stringify(kernel.host.plugins()))
if (operation !== 'start') {
  // Only the operation is of interest, not the start before it.
  calls = 0
  await perform(holder.installer, operation as Operation, source, operator)
}
console.log(calls)
await kernel.close()
