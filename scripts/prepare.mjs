// `npm ci`, `npm install -g .` and `npm pack` run this: it builds dist/, unless the same sources have been built already.
import { fileURLToPath } from 'node:url'
import { isBuilt } from './build-inputs.mjs'

if (isBuilt(fileURLToPath(new URL('..', import.meta.url)))) console.log('dist/ is up to date')
else await import('./build.mjs')
