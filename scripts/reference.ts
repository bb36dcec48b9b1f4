// Writes docs/reference and docs/configuration.md from the code: `npm run docs:reference`. A test holds the committed pages against it.
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pages } from './reference/pages.js'
import { configurationPage } from './reference/settings.js'

const folder = path.join(import.meta.dirname, '../docs/reference')
mkdirSync(folder, { recursive: true })
for (const [name, text] of Object.entries(await pages())) writeFileSync(path.join(folder, name), text)
writeFileSync(path.join(folder, '../configuration.md'), configurationPage())
