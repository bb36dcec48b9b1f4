import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { findPackage, packageFor, packageRoot } from '../load/package.js'
import { API_VERSION, type ApiVersion, type Manifest } from '../manifest/manifest.js'

const MAX_BYTES = 1024 * 1024
/**
 * The file that a TypeScript extension's `tsconfig.json` extends; specific to this machine, and not part of the
 * extension.
 */
export const TYPES = '.svc/tsconfig.json'

/**
 * Writes {@link TYPES} with the paths of this program's types and of the shared packages. With a second copy of valibot
 * in `node_modules`, the schemas of both would not be assignable to each other.
 * @param root folder of the extension, absolute
 */
export async function writeTypes(
  root: string,
  { apiVersion = API_VERSION }: Pick<Manifest, 'apiVersion'>,
): Promise<void> {
  const file = path.join(root, TYPES)
  const text = await typesConfig(apiVersion)
  const before = await readRegularFile(file, { maxBytes: MAX_BYTES })
  if (before?.toString() === text) return
  await mkdir(path.dirname(file), { recursive: true })
  await writeFile(file, text)
}

async function typesConfig(api: ApiVersion): Promise<string> {
  const own = packageRoot()
  const { exports } = await packageFor(api)
  const paths = Object.entries(exports).map(([name, { types }]) => [`svc${name.slice(1)}`, [path.join(own, types)]])
  const valibot = findPackage(own, 'valibot')
  const config = {
    compilerOptions: {
      target: 'es2022',
      lib: ['es2023', 'esnext.disposable'],
      module: 'esnext',
      moduleResolution: 'bundler',
      types: ['node'],
      strict: true,
      verbatimModuleSyntax: true,
      skipLibCheck: true,
      noEmit: true,
      paths: { ...Object.fromEntries(paths), ...(valibot === undefined ? {} : { valibot: [valibot] }) },
    },
  }
  return `// Written by svc extension init, validate, test, build and dev.\n${JSON.stringify(config, undefined, 2)}\n`
}

/** Development dependencies of a TypeScript extension, in this program's versions. */
export async function developmentPackages(): Promise<Readonly<Record<string, string>>> {
  const { devDependencies } = await packageFor(API_VERSION)
  return Object.fromEntries(['@types/node', 'esbuild', 'typescript'].map(name => [name, devDependencies[name] ?? '*']))
}
