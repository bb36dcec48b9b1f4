// The entry point of `svc completion words`, which a person waits for after a key press: it has only the code that answers.
import { homeOfEnv } from '../address.js'
import { entriesOf } from '../help-call.js'
import { openOutput } from '../show/open-output.js'
import { printCandidates } from './candidates.js'
import { loadCommandData } from './command-data.js'

/** Of the bundled CommonJS file, in which `node:url` and `node:module` would be the largest part to load. */
declare const __dirname: string
const data = loadCommandData(__dirname, homeOfEnv(process.env))
// The output is written by then. An exit at once spares Node the release of memory that the system frees anyway.
printCandidates({ env: process.env, stdout: openOutput() }, entriesOf(data), data).finally(() => process.exit())
