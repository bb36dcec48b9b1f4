import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { createKernel, Fault, messageOf, type PluginKernel } from '../kernel/index.js'
import { type InstalledExtension, ResourceFamilies, readManifest } from '../plugins/extensions/api.js'
import { Families } from '../plugins/extensions/families.js'
import { inTree } from '../plugins/index.js'
import { probe } from './look.js'

/**
 * Reads and publishes what the extension of a folder ships, as a daemon does, in a kernel of its own; none of its code and no
 * process of it runs.
 * @returns what is wrong, all that each plugin finds: file, line and key where it tells them
 * @throws Fault of the manifest
 */
export async function shippedProblems(folder: string): Promise<string[]> {
  const root = await realpath(folder)
  const manifest = await readManifest(root, file => readFile(file))
  const { name, version } = manifest
  const digest = ''
  const extension = { name, version, root, manifest, digest, enabled: true, state: 'enabled', tier: 'user' } as const
  const home = await mkdtemp(path.join(os.tmpdir(), 'svc-extension-home-'))
  const eyes = probe()
  try {
    const env = { PATH: process.env.PATH, HOME: home, SVC_HOME: home }
    const kernel = await createKernel({ home, plugins: [...inTree, eyes.plugin], env, log: () => {} })
    try {
      return await judge(eyes.kernel(), extension)
    } finally {
      await kernel.close()
    }
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

async function judge(kernel: PluginKernel, extension: InstalledExtension): Promise<string[]> {
  const { db, records } = kernel
  const problems: string[] = []
  const read = async (collect: PluginKernel['collect']) => {
    const families = new Families({ db, records, collect })
    const shipped = await families.read(extension).catch(error => void problems.push(...linesOf(error)))
    return async () => shipped && families.publish(extension, shipped)
  }
  // One by one, so that what one finds does not hide what another does.
  for (const family of kernel.collect(ResourceFamilies)) await read(() => [family] as never)
  if (problems.length > 0) return problems
  const publish = await read(kernel.collect)
  await publish().catch(error => problems.push(...linesOf(error)))
  return problems
}

/** Where details tell of each problem, they are by the place in a file. */
function linesOf(error: unknown): string[] {
  const places = Object.entries(error instanceof Fault ? (error.details ?? {}) : {})
  const told = places
    .filter(([place]) => /\.(?:toml|json)(?::|$)/.test(place))
    .map(([place, what]) => `${place}: ${what}`)
  return told.length > 0 ? told : [messageOf(error)]
}
