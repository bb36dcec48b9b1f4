import { chmod, mkdir, readdir, rm } from 'node:fs/promises'
import path from 'node:path'
import type { PluginKernel } from '../../../../kernel/plugin.js'

/** Folder below the home for files of extension processes; nothing watches it. */
const FOLDER = 'extension-data'

type HasHome = Pick<PluginKernel, 'home'>

/**
 * Creates the folder of an extension, mode 0700, and returns its path. The installed extension and each link have
 * separate folders.
 */
export async function makeDataFolder({ home }: HasHome, key: string): Promise<string> {
  const folder = home.path(FOLDER, key)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // An existing folder may have another mode, and the umask restricts a new one.
  await chmod(folder, 0o700)
  return folder
}

/** Removes the folders of an extension and of its links. */
export async function removeDataFolders({ home }: HasHome, name: string): Promise<void> {
  const names = await readdir(home.path(FOLDER)).catch(() => [])
  for (const one of names)
    if (one === name || one.startsWith(`${name}@`))
      await rm(path.join(home.path(FOLDER), one), { recursive: true, force: true })
}
