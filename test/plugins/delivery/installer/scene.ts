import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Fault } from '../../../../kernel/plugin.js'
import type { Installer, InstallerOptions } from '../../../../plugins/delivery/installer/installer.js'
import { type BootOptions, boot, type TestKernel } from '../../../harness/kernel.js'
import { type Holder, holderPlugin } from './holder.js'

/** A kernel with the installer. */
export async function scene(
  options: Partial<InstallerOptions> = {},
  more: Partial<BootOptions> = {},
): Promise<TestKernel & { holder: Holder; installer: Installer }> {
  let holder: Holder | undefined
  const made = (found: Holder) => {
    holder = found
  }
  const test = await boot({ listen: [], ...more, plugins: [...(more.plugins ?? []), holderPlugin(options, made)] })
  if (!holder) throw new Error(`the installer did not start: ${JSON.stringify(test.kernel.host.plugins())}`)
  return { ...test, holder, installer: holder.installer }
}

/** Writes files into a folder; a value is the text. */
export async function files(folder: string, texts: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  for (const [name, text] of Object.entries(texts)) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true })
    await writeFile(path.join(folder, name), text)
  }
  return folder
}

/** Every file and link below a folder with its content, by path; of anything else what it is. */
export async function contents(folder: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const full = path.join(entry.parentPath, entry.name)
    if (entry.isFile()) found[path.relative(folder, full)] = await readFile(full, 'latin1')
    else if (!entry.isDirectory()) found[path.relative(folder, full)] = 'no plain file'
  }
  return found
}

/** The fault that a promise rejects with. */
export async function faultFrom(work: Promise<unknown>): Promise<Fault> {
  return work.then(
    () => {
      throw new Error('it was expected to fail')
    },
    error => error as Fault,
  )
}
