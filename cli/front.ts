// The entry point of `svc`. Help and completion words are answered by this small file alone, because a person waits for them after
// a key press, and V8 needs longer to read the whole CLI than to answer. Everything else is left to svc.cjs.
import { fstatSync, writeSync } from 'node:fs'
import { homeOfEnv } from './address.js'
import { printCandidates } from './commands/candidates.js'
import { loadCommandData } from './commands/command-data.js'
import { glossaryEntry } from './commands/glossary.js'
import { commandHelp, groupHelp } from './commands/help.js'
import { entriesOf, findCalled, readCall } from './help-call.js'
import type { Sink } from './io.js'
import { asciiSink, isAsciiLocale } from './show/ascii.js'
import { widthOf } from './show/output.js'

const { env } = process
/** Of the bundled CommonJS file, in which `node:url` and `node:module` would be the largest part to load. */
declare const __dirname: string
declare const require: (name: string) => unknown
const argv = process.argv.slice(2)

/** Standard output; without Node's streams unless it is a terminal. */
function openOutput(): Sink {
  const stat = fstatSync(1)
  if (!stat.isFIFO() && !stat.isFile()) return process.stdout.on('error', cannotWrite)
  return { write: text => writeWhole(Buffer.from(text)) }
}

function writeWhole(bytes: Buffer): void {
  let at = 0
  try {
    while (at < bytes.length) at += writeSync(1, bytes, at)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // A nonblocking pipe: Node's stream waits for it.
    if (code === 'EAGAIN') process.stdout.write(bytes.subarray(at))
    // EPIPE means that the reader has closed the pipe, which is no error.
    else if (code !== 'EPIPE') cannotWrite(error as Error)
  }
}

function cannotWrite({ message }: Error): never {
  process.stderr.write(`error: the output cannot be written: ${message}\n`)
  process.exit(1)
}

/** Prints the requested help; false when the full CLI has to handle the call. */
function printHelp(): boolean {
  const call = readCall(argv)
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

if (!hasFolder()) {
  process.stderr.write(
    'error: the current folder does not exist any more\n  next: cd to another folder and try again\n',
  )
  process.exitCode = 1
} else if (argv.length === 2 && argv[0] === 'completion' && argv[1] === 'words') {
  const data = loadCommandData(__dirname, homeOfEnv(env))
  const stdout = openOutput()
  void printCandidates({ env, stdout }, entriesOf(data), data)
} else if (!printHelp()) require('./svc.cjs')
