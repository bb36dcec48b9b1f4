import { mkdtemp, realpath, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { conflictOf, createKernel, lackOf } from '../kernel/index.js'
import type { Plugin } from '../kernel/plugin.js'
import { readManifest } from '../plugins/delivery/extensions/api.js'
import { publishProblems } from '../plugins/delivery/extensions/authoring/publish-problems.js'
import { formerNames, inTree } from '../plugins/index.js'
import { probe } from './traces.js'

/**
 * The reasons for which the host would refuse a replacement: it lacks parts that others rely on, or claims names of other plugins.
 * The plugin is not run.
 */
export function replacementProblems(plugin: Pick<Plugin, 'replaces' | 'surface' | 'provides'>): string[] {
  const { replaces } = plugin
  if (replaces === undefined) return []
  const former = Object.hasOwn(formerNames, replaces) ? formerNames[replaces] : undefined
  const original = inTree.find(({ name, provides }) =>
    former === undefined ? name === replaces : name === former && provides && provides.id === plugin.provides?.id,
  )
  if (!original && former !== undefined) {
    const where = former === 'kernel' ? former : `plugin ${former}`
    return [`replaces ${replaces}: it is a part of the ${where} now and cannot be replaced by itself`]
  }
  if (!original) return [`replaces ${replaces}: svc has no plugin of this name. List them: svc plugin list`]
  // A replacement runs under the name of its original.
  const seated = { name: original.name, provides: plugin.provides, surface: plugin.surface } as Plugin
  return [conflictOf(seated, inTree), lackOf(seated, original)].filter(problem => problem !== undefined)
}

/**
 * Reads and publishes the content of an extension folder as a daemon does, in a kernel of its own; no code or process of the
 * extension runs.
 * @returns the problems that all plugins found, with file, line and key where known
 * @throws Fault of the manifest
 */
export async function shippedProblems(folder: string): Promise<string[]> {
  const root = await realpath(folder)
  const manifest = await readManifest(root)
  const { name, version } = manifest
  const digest = ''
  const extension = {
    name,
    key: name,
    version,
    root,
    manifest,
    digest,
    enabled: true,
    state: 'enabled',
    tier: 'user',
  } as const
  const home = await mkdtemp(path.join(os.tmpdir(), 'svc-extension-home-'))
  const eyes = probe()
  try {
    const env = { PATH: process.env.PATH, HOME: home, SVC_HOME: home }
    const kernel = await createKernel({ home, plugins: [...inTree, eyes.plugin], formerNames, env, log: () => {} })
    try {
      return await publishProblems(eyes.kernel(), extension)
    } finally {
      await kernel.close()
    }
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}
