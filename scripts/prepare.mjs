// Run by `npm ci`, `npm install -g .` and `npm pack`: builds dist/ unless it is up to date.
import { fileURLToPath } from 'node:url'
import { isBuilt } from './build-inputs.mjs'

if (isBuilt(fileURLToPath(new URL('..', import.meta.url)))) console.log('dist/ is up to date')
else await import('./build.mjs')
