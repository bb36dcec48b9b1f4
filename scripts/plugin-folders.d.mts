export interface PluginFolder {
  readonly name: string
  readonly group: string
  readonly folder: string
  readonly files: readonly string[]
}

export function pluginFolders(root: string): PluginFolder[]
