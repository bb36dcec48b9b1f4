// Run by kills.ts: carries out one operation on a home and ends itself with SIGKILL at a call of the disk.
import { createKernel } from '../../../kernel/index.js'
import { operator } from '../../../kernel/plugin.js'
import { systemFiles } from '../../../plugins/delivery/installer/files.js'
import { base } from '../../../plugins/index.js'
import { type Holder, holderPlugin } from '../../plugins/delivery/installer/holder.js'
import { type Operation, perform } from './operations.js'
import { Steps } from './steps.js'

const [home = '', operation = 'start', source = '', at = '0', mutant = ''] = process.argv.slice(2)

/** What somebody could take for a rename: it must be found out. */
async function copyFileByFile(from: string, to: string): Promise<void> {
  const { cp, mkdir, readdir } = await import('node:fs/promises')
  await mkdir(to)
  for (const name of await readdir(from)) {
    await cp(`${from}/${name}`, `${to}/${name}`, { recursive: true })
    await steps.step()
  }
  await systemFiles.remove(from)
}

const steps = new Steps(Number(at))
const files = steps.files(mutant === 'copies' ? copyFileByFile : undefined)
let holder: Holder | undefined
// Only the operation is of interest, not the start before it, unless that is the operation.
if (operation === 'start') steps.begin()
const made = (found: Holder) => {
  holder = found
}
const kernel = await createKernel({
  home,
  plugins: [...base, holderPlugin({ files }, made)],
  listen: [],
  env: { PATH: process.env.PATH },
  log: () => {},
})
if (!holder) throw new Error(JSON.stringify(kernel.host.plugins()))
if (operation !== 'start') {
  steps.begin()
  await perform(holder.installer, operation as Operation, source, operator)
}
console.log(steps.count)
await kernel.close()
