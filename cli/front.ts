// The entry point of `svc` for help, which this small file answers alone: V8 needs longer to read the whole CLI than to answer.
import { homeOfEnv } from './address.js'
import { loadCommandData } from './commands/command-data.js'
import { glossaryEntry } from './commands/glossary.js'
import { commandHelp, groupHelp } from './commands/help.js'
import { entriesOf, findCalled, readCall } from './help-call.js'
import { asciiSink, isAsciiLocale } from './show/ascii.js'
import { openOutput } from './show/open-output.js'
import { widthOf } from './show/output.js'

const { env } = process
/** Of the bundled CommonJS file, in which `node:url` and `node:module` would be the largest part to load. */
declare const __dirname: string
declare const require: (name: string) => unknown
const argv = process.argv.slice(2)

/** Whether the help was printed. The full CLI reports what fails here. */
function isAnswered(): boolean {
  try {
    return printHelp()
  } catch {
    return false
  }
}

/** Prints the requested help or version; false when the full CLI has to handle the call. */
function printHelp(): boolean {
  const call = readCall(argv)
  if (argv.length === 1 && argv[0] === '--version') {
    openOutput().write(`${loadCommandData(__dirname, homeOfEnv(env)).version}\n`)
    return true
  }
  if (!call.help || call.words.some(word => !/^[\w:.-]+$/.test(word) || /^(-o|--output|--json)/.test(word)))
    return false
  const data = loadCommandData(__dirname, homeOfEnv(env))
  const entries = entriesOf(data)
  const { found, term } = findCalled(argv, call, entries)
  if (found.is === 'unknown' || (term !== undefined && glossaryEntry(__dirname, term, 80).length > 0)) return false
  const output = openOutput()
  const width = widthOf(env, output)
  const lines = found.is === 'command' ? commandHelp(found.entry, width) : groupHelp(found.name, entries, data, width)
  const sink = isAsciiLocale(env) ? asciiSink(output) : output
  sink.write(`${lines.join('\n')}\n`)
  return true
}

/** Whether the current folder exists: most of Node fails without one. */
function hasFolder(): boolean {
  try {
    process.cwd()
    return true
  } catch {
    return false
  }
}

// Help and version need no folder.
if (isAnswered()) {
  process.exitCode = 0
} else if (!hasFolder()) {
  process.stderr.write(
    'error: the current folder does not exist any more\n  next: cd to another folder and try again\n',
  )
  process.exitCode = 1
} else require('./svc.cjs')
