import { readdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { run } from 'node:test'
import type { Manifest } from '../manifest/manifest.js'
import { bundleSource } from './bundle.js'
import { withCopy } from './copy.js'

export interface TestResult {
  readonly name: string
  /** Reason of a failure, with paths of the original folder. */
  readonly error?: string
}

export interface TestOutcome {
  readonly passed: number
  readonly failed: number
  readonly tests: readonly TestResult[]
}

export interface TestRun {
  readonly signal: AbortSignal
  /** Runs only tests whose names contain this text, including those of the contract; no match is a failure. */
  readonly filter?: string | undefined
  /** Milliseconds for each test file; a file that exceeds it is ended. */
  readonly timeoutMs: number
  /** Called when a test ends. */
  readonly onResult: (result: TestResult) => void
  /** Called with the output of tests as it arrives. */
  readonly onOutput: (text: string) => void
}

/** The contract suite that every extension must pass; the file is written beside the tested copy. */
const CONTRACT = 'contract.test.mjs'
const TEST_FILE = /\.test\.m?js$/
/** Node 24 and later end only the test at the timeout, not its process, which would run as long as the test holds it. */
const ENDING = { execArgv: ['--test-force-exit'] }
const TYPED_TEST = /\.test\.ts$/

/**
 * Runs the contract suite and the folder's own `*.test.mjs` and `*.test.ts`, a process each, on a copy from which `svc`
 * resolves as in the daemon.
 * @throws Fault `extension_build_failed` of a test in TypeScript; `extension_bundler_missing`
 */
export function testFolder(
  manifest: Pick<Manifest, 'name' | 'apiVersion'>,
  root: string,
  { signal, filter, timeoutMs, onResult, onOutput }: TestRun,
): Promise<TestOutcome> {
  return withCopy(manifest, root, async ({ folder, above }) => {
    const contract = path.join(above, CONTRACT)
    const code = `import { extensionContract } from 'svc/testing'\nextensionContract(${JSON.stringify(folder)})\n`
    await writeFile(contract, code)
    const files = [contract, ...(await ownTests(root, folder))]
    const original = (text: string) => text.replaceAll(folder, root)
    const tests: TestResult[] = []
    const end = (result: TestResult) => {
      tests.push(result)
      onResult(result)
    }
    const openTests = new Map<string, string[]>()
    const testNamePatterns = filter === undefined ? undefined : [new RegExp(filter.replace(/[^\w\s]/g, '\\$&'), 'i')]
    const events = run({ files, concurrency: 1, timeout: timeoutMs, signal, testNamePatterns, ...ENDING })
    events.on('test:dequeue', ({ name: test, file = '' }) => {
      if (!isFile(test)) openTests.set(file, [...(openTests.get(file) ?? []), test])
    })
    events.on('test:complete', ({ name: test, file = '' }) => {
      const left = openTests.get(file) ?? []
      left.splice(left.lastIndexOf(test), left.includes(test) ? 1 : 0)
    })
    events.on('test:pass', ({ name: test, details, skip }) => {
      if (details.type !== 'suite' && !isFile(test) && skip === undefined) end({ name: test })
    })
    events.on('test:fail', ({ name: test, details, file }) => {
      // A failed suite repeats the failures of its tests, which are reported on their own.
      if (details.type === 'suite') return
      const last = isFile(test) ? openTests.get(file ?? test)?.at(-1) : test
      const hanging = isTimeout(details.error) ? last : undefined
      end({ name: hanging ?? original(test), error: original(hanging ? HANGS : textOf(details.error)) })
    })
    for (const stream of ['test:stdout', 'test:stderr'] as const)
      events.on(stream, ({ message }) => onOutput(original(message)))
    for await (const _ of events);
    const failed = tests.filter(({ error }) => error !== undefined).length
    return { passed: tests.length - failed, failed, tests }
  })
}

/** The tests in the copy of the folder; TypeScript tests are bundled there with their imports. */
async function ownTests(root: string, folder: string): Promise<string[]> {
  const files = (await readdir(folder, { recursive: true }))
    .filter(file => !file.split(path.sep).includes('node_modules'))
    .sort()
  const typed = files.filter(file => TYPED_TEST.test(file))
  for (const file of typed) await writeFile(bundleOf(path.join(folder, file)), await bundleSource(root, file))
  return [...files.filter(file => TEST_FILE.test(file)), ...typed.map(bundleOf)].map(file => path.resolve(folder, file))
}

const bundleOf = (file: string) => file.replace(/\.ts$/, '.mjs')

/** The runner also reports each file as a test after the tests in it. */
const isFile = (test: string) => path.isAbsolute(test) && TEST_FILE.test(test)

const causeOf = (error: Error) => (error.cause instanceof Error ? error.cause : error)
const isTimeout = (error: Error) => /timed out after/.test(causeOf(error).message)
const HANGS = 'it did not end within the timeout of its file; set a longer one: svc extension test --timeout <seconds>'

/** The message of a failed test with the compared values, without frames of the runner. */
function textOf(error: Error): string {
  const cause = causeOf(error)
  const frames = (cause.stack ?? '').split('\n').filter(line => /^\s+at /.test(line) && !line.includes('node:internal'))
  return [cause.message, ...frames.slice(0, 5)].join('\n')
}
