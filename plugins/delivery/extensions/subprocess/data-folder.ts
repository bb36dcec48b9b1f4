import { chmod, mkdir, readdir, rm } from 'node:fs/promises'
import path from 'node:path'
import type { PluginKernel } from '../../../../kernel/plugin.js'

/** Folder below the home with the files that processes of extensions keep; nothing watches it. */
const FOLDER = 'extension-data'

type HasHome = Pick<PluginKernel, 'home'>

/** Makes the folder of an extension, 0700; its path. Each copy of an extension has its own. */
export async function makeDataFolder({ home }: HasHome, key: string): Promise<string> {
  const folder = home.path(FOLDER, key)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // One that was made before with another mode, or by another umask.
  await chmod(folder, 0o700)
  return folder
}

/** Removes the folder of an extension, and those of its links. */
export async function removeDataFolders({ home }: HasHome, name: string): Promise<void> {
  const names = await readdir(home.path(FOLDER)).catch(() => [])
  for (const one of names)
    if (one === name || one.startsWith(`${name}@`))
      await rm(path.join(home.path(FOLDER), one), { recursive: true, force: true })
}
