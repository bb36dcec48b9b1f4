import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const here = path.dirname(fileURLToPath(import.meta.url))
const root = path.join(here, '../../..')

/** Checks a text as if it stood beside this file; returns `line code` of what the compiler says. */
function errorsOf(text: string): string[] {
  const cache = path.join(root, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(path.join(cache, 'svc-types-'))
  try {
    writeFileSync(path.join(folder, 'given.ts'), text.replaceAll("'../../../", `'${root}/`))
    const compilerOptions = { noEmit: true, rootDir: '/' }
    const config = { extends: path.join(root, 'tsconfig.json'), compilerOptions, include: ['given.ts'], exclude: [] }
    writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(config))
    const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
    const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], { encoding: 'utf8' })
    return stdout
      .split('\n')
      .filter(line => /^\S.*error TS/.test(line))
      .map(line => /given\.ts\((\d+),\d+\): error (TS\d+)/.exec(line)?.slice(1).join(' ') ?? line)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('the types of the contract refuse each mistake with exactly the expected error', () => {
  const text = readFileSync(path.join(here, 'type-errors.ts'), 'utf8')
  const lines = text.split('\n')
  const wanted = lines.flatMap((line, at) => {
    const code = /@ts-expect-error (TS\d+)/.exec(line)?.[1]
    return code ? [`${at + 2} ${code}`] : []
  })
  assert.ok(wanted.length >= 12)
  assert.equal(errorsOf(text.replaceAll('@ts-expect-error', 'expected')), wanted)
})

test.run()
