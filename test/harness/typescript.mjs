// `node --import …/typescript.mjs file.ts`: runs the sources of the tree as the runner translated them, once for all processes.
import { register } from 'node:module'

process.setSourceMapsEnabled(true)
register('./typescript-hooks.mjs', import.meta.url)
