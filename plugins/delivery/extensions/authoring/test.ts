import { readdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { run } from 'node:test'
import type { Manifest } from '../manifest/manifest.js'
import { withCopy } from './copy.js'
import { bundleSource } from './pack.js'

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

export interface TestRun {
  readonly signal: AbortSignal
  /** Only tests whose names contain this text run, those of the contract included; none of them is a failure. */
  readonly filter?: string | undefined
  /** Milliseconds for each file of tests; one that something keeps alive is ended. */
  readonly timeoutMs: number
  /** Called with each test as it ends. */
  readonly told: (result: TestResult) => void
  /** Called with what tests write, as it comes. */
  readonly written: (text: string) => void
}

/** The suite that every extension has to pass, as a file beside the copy that it is about. */
const CONTRACT = 'contract.test.mjs'
const TEST_FILE = /\.test\.m?js$/
const TYPED_TEST = /\.test\.ts$/

/**
 * Runs the contract of extensions and the folder's own `*.test.mjs` and `*.test.ts`, a process each, on a copy from which
 * `svc` is found as it is in the daemon.
 * @throws Fault `extension_build_failed` of a test in TypeScript; `extension_bundler_missing`
 */
export function testFolder(
  manifest: Pick<Manifest, 'name' | 'apiVersion'>,
  root: string,
  { signal, filter, timeoutMs, told, written }: TestRun,
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
      told(result)
    }
    const begun = new Map<string, string[]>()
    const testNamePatterns = filter === undefined ? undefined : [new RegExp(filter.replace(/[^\w\s]/g, '\\$&'), 'i')]
    const events = run({ files, concurrency: 1, timeout: timeoutMs, signal, testNamePatterns })
    events.on('test:dequeue', ({ name: test, file = '' }) => {
      if (!isFile(test)) begun.set(file, [...(begun.get(file) ?? []), test])
    })
    events.on('test:complete', ({ name: test, file = '' }) => {
      const left = begun.get(file) ?? []
      left.splice(left.lastIndexOf(test), left.includes(test) ? 1 : 0)
    })
    events.on('test:pass', ({ name: test, details, skip }) => {
      if (details.type !== 'suite' && !isFile(test) && skip === undefined) end({ name: test })
    })
    events.on('test:fail', ({ name: test, details, file }) => {
      // What makes a suite fail is told of by itself.
      if (details.type === 'suite') return
      const hanging = isFile(test) && isTimeout(details.error) ? begun.get(file ?? test)?.at(-1) : undefined
      end({ name: hanging ?? original(test), error: original(hanging ? HANGS : textOf(details.error)) })
    })
    for (const stream of ['test:stdout', 'test:stderr'] as const)
      events.on(stream, ({ message }) => written(original(message)))
    for await (const _ of events);
    const failed = tests.filter(({ error }) => error !== undefined).length
    return { passed: tests.length - failed, failed, tests }
  })
}

/** The tests of the folder in its copy; those in TypeScript are bundled there, with what they import. */
async function ownTests(root: string, folder: string): Promise<string[]> {
  const files = (await readdir(folder, { recursive: true }))
    .filter(file => !file.split(path.sep).includes('node_modules'))
    .sort()
  const typed = files.filter(file => TYPED_TEST.test(file))
  for (const file of typed) await writeFile(bundleOf(path.join(folder, file)), await bundleSource(root, file))
  return [...files.filter(file => TEST_FILE.test(file)), ...typed.map(bundleOf)].map(file => path.resolve(folder, file))
}

const bundleOf = (file: string) => file.replace(/\.ts$/, '.mjs')

/** A file that passed is told of as well, after its tests. */
const isFile = (test: string) => path.isAbsolute(test) && TEST_FILE.test(test)

const causeOf = (error: Error) => (error.cause instanceof Error ? error.cause : error)
const isTimeout = (error: Error) => /timed out after/.test(causeOf(error).message)
const HANGS = 'it did not end before its file was ended; svc extension test --timeout <seconds> gives it longer'

/** The error of a test with what it compared, without the frames of the runner. */
function textOf(error: Error): string {
  const cause = causeOf(error)
  const frames = (cause.stack ?? '').split('\n').filter(line => /^\s+at /.test(line) && !line.includes('node:internal'))
  return [cause.message, ...frames.slice(0, 5)].join('\n')
}
