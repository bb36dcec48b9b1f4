// `node --import …/typescript.mjs file.ts`: runs the sources of the tree as the runner translated them, once for all processes.
import * as module from 'node:module'
import * as hooks from './typescript-hooks.mjs'

// Below the runner stack traces lead into its bundle; it translates them when it shows them.
if (process.env.SVC_TEST_BUNDLE === undefined) process.setSourceMapsEnabled(true)
if (module.registerHooks) module.registerHooks(hooks)
else module.register('./typescript-hooks.mjs', import.meta.url)
