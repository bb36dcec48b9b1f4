import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { KernelSettings } from '../kernel/platform.js'
import type { Plugin, Setting } from '../kernel/plugin.js'
import { version } from '../kernel/version.js'
import { inTree } from '../plugins/index.js'
import { buildDocument } from '../plugins/platform/openapi/document.js'
import { clientTypes, commandTypes, type Document } from './client-types.js'
import type { CommandData, ModuleCommand } from './commands/command-data.js'
import { writeCommandLines } from './commands/command-lines.js'
import { describeRoutes } from './commands/describe-commands.js'
import { withExamples } from './document-examples.js'
import { localCommands } from './local.js'
import { manPages } from './man-pages.js'
import { configSchema, settingSchema } from './schema/config-schema.js'
import { bundleSchema, extensionSchema } from './schema/manifest-schemas.js'

// Runs after the code is built: writes commands.json, json-schema/ and man/ beside itself, schemas/openapi.json,
// client/operations.ts and client/commands.ts, from the surfaces alone.
const dist = dirname(fileURLToPath(import.meta.url))

/**
 * Hand-written commands. The function returned by `load` has to be an export of the plugin's `commands.ts`, so that the CLI can
 * load it without the plugin.
 */
async function describeModules({ name, surface }: Plugin): Promise<ModuleCommand[]> {
  const commands = surface.commands ?? []
  if (commands.length === 0) return []
  const file = `commands/${name}.js`
  if (!existsSync(join(dist, file))) throw new Error(`plugins/${name}/commands.ts is missing or not built`)
  const module = (await import(pathToFileURL(join(dist, file)).href)) as Record<string, unknown>
  return Promise.all(
    commands.map(async ({ path, summary, args = [], options = [], local, load }) => {
      const { run } = await load()
      const found = Object.keys(module).find(key => module[key] === run)
      if (found === undefined)
        throw new Error(`plugins/${name}/commands.ts does not export the function of the command svc ${path}`)
      return {
        kind: 'module' as const,
        path,
        summary,
        args,
        options,
        ...(local && { local }),
        module: file,
        export: found,
      }
    }),
  )
}

function refuseDuplicates(paths: readonly string[]): void {
  const twice = paths.find((path, i) => paths.indexOf(path) !== i)
  if (twice !== undefined) throw new Error(`two commands are named svc ${twice}`)
}

function put(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  const temporary = `${file}.${process.pid}.tmp`
  writeFileSync(temporary, text)
  renameSync(temporary, file)
}

const routes = inTree.flatMap(plugin => plugin.surface.routes ?? [])
const data: CommandData = {
  version,
  routes: describeRoutes(routes),
  commands: (await Promise.all(inTree.map(describeModules))).flat(),
}
const paths = [...data.routes, ...data.commands, ...localCommands].map(({ path }) => path)
refuseDuplicates(paths)
put(join(dist, 'commands.json'), writeCommandLines(data))
const pages = manPages([...localCommands, ...data.routes, ...data.commands], version)
for (const [name, page] of pages) put(join(dist, 'man', name), page)
put(join(dist, 'glossary.md'), readFileSync(join(dist, '..', 'docs', 'glossary.md'), 'utf8'))
const settings = [...Object.values(KernelSettings), ...inTree.flatMap(({ surface }) => surface.settings ?? [])]
const jsonSchemas = {
  config: configSchema((settings as Setting[]).map(settingSchema), version),
  extension: extensionSchema(version),
  bundle: bundleSchema(version),
}
for (const [name, schema] of Object.entries(jsonSchemas))
  put(join(dist, 'json-schema', `${name}.schema.json`), `${JSON.stringify(schema, undefined, 2)}\n`)
const document = await buildDocument(routes, version)
withExamples(document as never)
put(join(dist, '..', 'schemas', 'openapi.json'), `${JSON.stringify(document, undefined, 2)}\n`)
put(join(dist, '..', 'client', 'operations.ts'), clientTypes(document as Document))
put(join(dist, '..', 'client', 'commands.ts'), commandTypes(paths))
