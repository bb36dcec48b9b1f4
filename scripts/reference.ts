// Generates docs/reference, docs/configuration.md and test/contract/surface.txt from the code: `npm run docs:reference`; `--
// --release` also generates test/contract/exports.txt. A test compares the committed files with the code.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { entrySources, exportsOf } from './reference/exports.js'
import { pages } from './reference/pages.js'
import { configurationPage } from './reference/settings.js'
import { surfaceLines } from './reference/surface.js'

const folder = path.join(import.meta.dirname, '../docs/reference')
mkdirSync(folder, { recursive: true })
for (const [name, text] of Object.entries(await pages())) writeFileSync(path.join(folder, name), text)
writeFileSync(path.join(folder, '../configuration.md'), configurationPage())
const document = JSON.parse(readFileSync(path.join(import.meta.dirname, '../schemas/openapi.json'), 'utf8'))
writeFileSync(path.join(import.meta.dirname, '../test/contract/surface.txt'), surfaceLines(document))
if (process.argv.includes('--release')) {
  const lines = [...entrySources()].map(([entry, file]) => [entry, ...[...exportsOf(file)].sort()].join(' '))
  writeFileSync(path.join(import.meta.dirname, '../test/contract/exports.txt'), `${lines.join('\n')}\n`)
}
