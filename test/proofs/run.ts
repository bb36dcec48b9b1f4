// Runs one proof: `npm run prove:<name> -- [options]`; without a name it lists them. A proof is a program of this folder: it says at its
// top what it proves and how it is called, and exits with 1 when that does not hold.
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { performance } from 'node:perf_hooks'

const names = readdirSync(import.meta.dirname)
  .filter(file => file.endsWith('.ts') && file !== 'run.ts')
  .map(file => file.slice(0, -'.ts'.length))
const [name = '', ...options] = process.argv.slice(2)

/** The first sentence of a proof, without its command. */
function headOf(proof: string): string {
  const [line = ''] = readFileSync(path.join(import.meta.dirname, `${proof}.ts`), 'utf8').split('\n')
  return line.replace(/^\/\/ /, '').replace(/: `npm run.*$/, '')
}

if (names.includes(name)) {
  const startedAt = performance.now()
  process.argv.splice(2, process.argv.length, ...options)
  process.once('exit', code => {
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    console.log(`${name}: ${code === 0 ? 'held' : `failed, exit code ${code}`}, ${seconds} s`)
  })
  await import(`./${name}.ts`)
} else {
  if (name !== '') console.error(`no proof is named ${name}`)
  for (const each of names) console.error(`  ${each.padEnd(12)}${headOf(each)}`)
  process.exitCode = 2
}
