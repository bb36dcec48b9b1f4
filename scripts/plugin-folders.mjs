import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The folders of the plugins, `plugins/<group>/<name>`, for the build, the tests and the reference. A plugin is a folder with an
 * `index.ts`.
 * @param {string} root folder of the package
 * @returns {{ name: string, group: string, folder: string, files: string[] }[]} `folder` relative to the root of the package,
 * `files` its sources relative to it
 * @throws Error if two plugins have the same name, because `svc/plugins/<name>` has no group
 */
export function pluginFolders(root) {
  const plugins = join(root, 'plugins')
  if (!existsSync(plugins)) return []
  const folders = from =>
    readdirSync(from, { withFileTypes: true })
      .filter(entry => entry.isDirectory())
      .map(({ name }) => name)
      .sort()
  const found = folders(plugins).flatMap(group =>
    folders(join(plugins, group)).map(name => ({
      name,
      group,
      folder: `plugins/${group}/${name}`,
      files: readdirSync(join(plugins, group, name), { recursive: true, encoding: 'utf8' })
        .filter(file => file.endsWith('.ts'))
        .sort(),
    })),
  )
  const all = found.filter(({ files }) => files.includes('index.ts'))
  for (const { name, folder } of all) {
    const other = all.find(one => one.name === name && one.folder !== folder)
    if (other) throw new Error(`${folder} and ${other.folder} have one name`)
  }
  return all
}
