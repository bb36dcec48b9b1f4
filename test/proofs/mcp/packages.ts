import path from 'node:path'
import { install, root, type Tried } from '../../../scripts/test-real/install.js'

/** What is tried beside the packages of this repository; the newest versions need a newer Node, which is a package as well. */
const packages = {
  inspector: { package: '@modelcontextprotocol/inspector', version: '2.12.0' },
  conformance: { package: '@modelcontextprotocol/conformance', version: '0.1.16' },
  node: { package: 'node', version: '24.21.0' },
} as const satisfies Readonly<Record<string, Tried>>
type Name = keyof typeof packages

/** Installs them once; throws NotInstalled where the registry gives one of them not. */
export async function installPackages(): Promise<void> {
  for (const name of Object.keys(packages) as Name[]) await install(folderOf(name), packages[name])
}

const folderOf = (name: Name) => `mcp-${name}`
const inside = (name: Name, file: string) => path.join(root, folderOf(name), 'node_modules', file)

/** The command line of one of them, to which arguments are added. */
export const inspector = (): string[] => [
  inside('node', '.bin/node'),
  inside('inspector', '.bin/mcp-inspector'),
  '--cli',
]
export const conformance = (): string[] => [inside('node', '.bin/node'), inside('conformance', '.bin/conformance')]
