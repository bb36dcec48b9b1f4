import { readdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { run } from 'node:test'
import { withCopy } from './copy.js'

export interface TestResult {
  readonly name: string
  /** Why it failed; paths in it are those of the folder. */
  readonly error?: string
}

export interface TestOutcome {
  readonly passed: number
  readonly failed: number
  readonly tests: readonly TestResult[]
}

/** The suite that every extension has to pass, as a file beside the copy that it is about. */
const CONTRACT = 'contract.test.mjs'
/** Milliseconds for each file of tests; one that something keeps alive is ended. */
const FILE_MS = 60_000
const TEST_FILE = /\.test\.m?js$/

/**
 * Runs the contract of extensions and the folder's own `*.test.mjs`, a process each, on a copy from which `svc` is found as it
 * is in the daemon.
 * @param told called with each test as it ends
 */
export function testFolder(
  name: string,
  root: string,
  { signal, told }: { readonly signal: AbortSignal; readonly told: (result: TestResult) => void },
): Promise<TestOutcome> {
  return withCopy(name, root, async ({ folder, above }) => {
    const contract = path.join(above, CONTRACT)
    const code = `import { extensionContract } from 'svc/testing'\nextensionContract(${JSON.stringify(folder)})\n`
    await writeFile(contract, code)
    const own = (await readdir(folder, { recursive: true }))
      .filter(file => TEST_FILE.test(file) && !file.split(path.sep).includes('node_modules'))
      .sort()
      .map(file => path.join(folder, file))
    const tests: TestResult[] = []
    const end = (result: TestResult) => {
      tests.push(result)
      told(result)
    }
    const events = run({ files: [contract, ...own], concurrency: 1, timeout: FILE_MS, signal })
    events.on('test:pass', ({ name: test, details, skip }) => {
      if (details.type !== 'suite' && !isFile(test) && skip === undefined) end({ name: test })
    })
    events.on('test:fail', ({ name: test, details }) => {
      if (details.type !== 'suite') end({ name: test, error: textOf(details.error).replaceAll(folder, root) })
    })
    for await (const _ of events);
    const failed = tests.filter(({ error }) => error !== undefined).length
    return { passed: tests.length - failed, failed, tests }
  })
}

/** A file that passed is told of as well, after its tests. */
const isFile = (test: string) => path.isAbsolute(test) && TEST_FILE.test(test)

/** The error of a test with what it compared, without the frames of the runner. */
function textOf(error: Error): string {
  const cause = error.cause instanceof Error ? error.cause : error
  const frames = (cause.stack ?? '').split('\n').filter(line => /^\s+at /.test(line) && !line.includes('node:internal'))
  return [cause.message, ...frames.slice(0, 5)].join('\n')
}
