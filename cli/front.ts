// What `svc` runs first. Help and the words of a completion are answered by this file alone, whose code is short: somebody waits
// for them with a key pressed, and reading all of the command line takes V8 longer than to answer. All else is its business.
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
/** Of the CommonJS file that this becomes, where `node:url` and `node:module` would be the largest part of what is loaded. */
declare const __dirname: string
declare const require: (name: string) => unknown
const argv = process.argv.slice(2)

/** Standard output; where it is no terminal, without the streams of Node. */
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
    // A pipe that somebody opened so that it does not wait: Node's stream does.
    if (code === 'EAGAIN') process.stdout.write(bytes.subarray(at))
    // The reader has seen enough.
    else if (code !== 'EPIPE') cannotWrite(error as Error)
  }
}

function cannotWrite({ message }: Error): never {
  process.stderr.write(`error: the output cannot be written: ${message}\n`)
  process.exit(1)
}

/** Prints the help that is asked for; false where there is something else to say or to do. */
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

/** Programs are started in it and paths are relative to it, and much of Node fails without one. */
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
  void printCandidates({ env, stdout, signal: new AbortController().signal }, entriesOf(data), data)
} else if (!printHelp()) {
  // Node 20 has no such cache, and to look for it takes time.
  if (Number.parseInt(process.versions.node, 10) >= 22)
    (require('node:module') as { enableCompileCache(): void }).enableCompileCache()
  require('./svc.cjs')
}
