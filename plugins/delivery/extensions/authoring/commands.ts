import path from 'node:path'
import { command, shellWord } from '../../../../kernel/kit/commands/command-line.js'
import { type CommandContext, Fault } from '../../../../kernel/plugin.js'
import { packFolder } from '../../installer/api.js'
import type { Manifest } from '../manifest/manifest.js'
import { typeOf } from '../manifest/manifest.js'
import { LANGUAGES, type Language } from './bridge-template.js'
import { bundleMain } from './bundle.js'
import { develop } from './develop.js'
import { writeExtension } from './init.js'
import { publishTo } from './publish.js'
import { FORMS, isForm } from './templates.js'
import { testFolder } from './test.js'
import { writeTypes } from './types.js'
import { readFolderManifest, type Validation, validateFolder } from './validate.js'

/** `svc extension init <name>` */
export const runInit = withFaultReport(async ({ args: { name = '' }, options, cwd, out, fault }) => {
  const { form = 'plugin', dir = name, language = 'ts' } = options
  if (!isForm(form)) return fault('usage', `unknown form: ${form}; use one of ${FORMS.join(', ')}`)
  if (!isLanguage(language)) return fault('usage', `unknown language: ${language}; use one of ${LANGUAGES.join(', ')}`)
  const folder = path.resolve(cwd, String(dir))
  const files = await writeExtension(folder, form, name, language)
  if (out.json) return void out.value({ name, form, folder, files })
  for (const file of files) out.line(`  ${path.relative(cwd, path.join(folder, file))}`)
  out.line(`wrote ${name}, an extension of the form ${form}`)
  const at = path.relative(cwd, folder) || '.'
  const install = form === 'typescript' ? `npm install --prefix ${shellWord(at)} && ` : ''
  out.line(out.color('dim', `next: ${install}${command('extension test', at)}`))
})

const isLanguage = (text: unknown): text is Language => (LANGUAGES as readonly unknown[]).includes(text)

/** `svc extension validate [dir]` */
export const runValidate = withFaultReport(async context => {
  await bundled(context)
  const { manifest, root, problems } = await validated(context)
  const { out } = context
  const { name, version } = manifest
  const type = typeOf(manifest)
  const valid = problems.length === 0
  if (out.json) out.value({ name, version, type, folder: root, valid, problems })
  else for (const problem of problems) out.line(out.color('red', problem))
  if (valid && !out.json) out.line(`${name} ${version} is valid, of type ${type}`)
  return valid ? undefined : 1
})

/** `svc extension build [dir]` */
export const runBuild = withFaultReport(async context => {
  const { options, cwd, out } = context
  const { manifest, root } = await valid(context)
  const file = path.resolve(cwd, String(options.out ?? archiveName(manifest)))
  const packed = await packFolder(root, manifest.name, file)
  if (out.json) return out.value({ name: manifest.name, version: manifest.version, ...packed })
  out.line(`packed ${packed.files} files in ${path.relative(cwd, file)}, ${packed.bytes} bytes`)
  out.line(`sha256 ${packed.sha256}`)
  out.line(
    out.color('dim', `next: ${command('extension install', path.relative(cwd, file), '--checksum', packed.sha256)}`),
  )
})

/** `svc extension publish [dir] --to <folder>` */
export const runPublish = withFaultReport(async context => {
  const { options, cwd, out, fault } = context
  if (options.to === undefined)
    return fault('usage', 'name the folder of a catalog: --to <folder>', command('extension publish', '--help'))
  const { manifest, root } = await valid(context)
  const catalog = path.resolve(cwd, String(options.to))
  const published = await publishTo(catalog, root, manifest, {
    ...(options.key !== undefined && { key: path.resolve(cwd, String(options.key)) }),
    ...(options.author !== undefined && { author: String(options.author) }),
  })
  if (out.json) return out.value(published)
  out.line(
    `published ${published.name} ${published.version} in ${path.relative(cwd, catalog) || '.'}${published.signed ? ', signed' : ''}`,
  )
  out.line(`sha256 ${published.sha256}`)
  if (manifest.main !== undefined) {
    const why = 'it runs code inside the daemon, which is allowed only for an extension from a local folder'
    out.line(out.color('yellow', `warning: it cannot be installed from the catalog: ${why}`))
  }
  out.line(out.color('dim', `use the catalog: ${command('config set', 'marketplace.catalog.base_url', catalog)}`))
})

/** `svc extension dev [dir]` */
export const runDev = withFaultReport(async context => {
  const source = await bundled(context)
  const { manifest, root } = await validated(context)
  await develop(context, manifest.name, root, source === undefined ? undefined : () => bundleMain(root, manifest))
})

/** `svc extension test [dir]` */
export const runTest = withFaultReport(async context => {
  const { out, options } = context
  await bundled(context)
  const { manifest, root, problems } = await validated(context)
  for (const problem of problems) out.line(out.color('red', problem))
  const filter = options.filter === undefined ? undefined : String(options.filter)
  let output = ''
  const { passed, failed, tests } = await testFolder(manifest, root, {
    signal: context.signal,
    filter,
    timeoutMs: Number(options.timeout ?? TEST_SECONDS) * 1000,
    onResult: ({ name, error }) => out.line(error === undefined ? `ok    ${name}` : `FAIL  ${name}\n${error}`),
    onOutput: text => {
      output = (output + text).slice(-KEPT_OUTPUT)
      if (!out.json) out.line(text.replace(/\n$/, ''))
    },
  })
  if (filter !== undefined && tests.length === 0) return context.fault('usage', `no test has ${filter} in its name`)
  const wrong = failed + problems.length
  if (out.json) out.value({ name: manifest.name, passed, failed: wrong, problems, tests, output })
  else out.line(`${passed} passed, ${wrong} failed`)
  return wrong === 0 ? undefined : 1
})

const TEST_SECONDS = 60
/** Characters of test output in the reply. */
const KEPT_OUTPUT = 256 * 1024
const archiveName = ({ name, version }: Manifest) => `${name}-${version}.tar.gz`
const folderOf = ({ args: { dir = '.' }, cwd }: CommandContext) => path.resolve(cwd, dir)
const validated = (context: CommandContext): Promise<Validation> => validateFolder(folderOf(context))

/** The bundled folder of a command that needs a valid one. */
async function valid(context: CommandContext): Promise<Validation> {
  await bundled(context)
  const { args, fault } = context
  const validation = await validated(context)
  const [problem] = validation.problems
  if (problem === undefined) return validation
  return fault(
    'extension_invalid',
    problem,
    command('extension validate', ...(args.dir === undefined ? [] : [args.dir])),
  )
}

/** Bundles the TypeScript beside `main`, if any, and writes the types for its compiler. @returns the source file */
async function bundled(context: CommandContext): Promise<string | undefined> {
  const { root, manifest } = await readFolderManifest(folderOf(context))
  const main = await bundleMain(root, manifest)
  const { out } = context
  if (main) await writeTypes(root, manifest)
  if (main?.script !== undefined && !out.json) out.line(out.color('dim', `bundled ${main.source} as ${main.script}`))
  return main?.source
}

/** Reports a Fault of these commands in the same form as one from the daemon. */
function withFaultReport<T>(run: (context: CommandContext) => Promise<T>) {
  return async (context: CommandContext): Promise<T> => {
    try {
      return await run(context)
    } catch (error) {
      if (error instanceof Fault) return context.fault(error.code, error.message, error.next)
      throw error
    }
  }
}
