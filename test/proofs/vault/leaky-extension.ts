import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'

/** Variables that the process asks for. */
export const variables = Array.from({ length: 16 }, (_, at) => `LEAKY_${at}`)
/** The one that it has from the environment of the daemon. */
export const INHERITED = 'LEAKY_INHERITED'

const main = `import { createInterface } from 'node:readline'
const values = Object.entries(process.env).filter(([name]) => name.startsWith('LEAKY_')).map(([, value]) => value)
const forms = [value => value, value => Buffer.from(value).toString('base64'), value => Buffer.from(value).toString('hex'),
  encodeURIComponent, value => JSON.stringify(value)]
for (const value of values) for (const form of forms) {
  const text = form(value)
  for (let at = 0; at < text.length; at += 7) {
    process.stderr.write(text.slice(at, at + 7))
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  process.stderr.write('\\n')
}
const fail = values.join(' ')
createInterface({ input: process.stdin }).on('line', line => {
  const { id } = JSON.parse(line)
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message: 'refused: ' + fail } }) + '\\n')
})
`

/** An extension whose process prints what it is given, in pieces, and fails with it. */
export async function writeLeakyExtension(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  const manifest = `name = "leaky"
version = "1.0.0"
requires_env = [${variables.map(name => `"${name}"`).join(', ')}]
[subprocess]
command = "node"
args = ["{{config_dir}}/main.mjs"]
[subprocess.secret_env]
${INHERITED} = "env:${INHERITED}"
`
  await writeFile(path.join(folder, 'extension.toml'), manifest)
  await writeFile(path.join(folder, 'main.mjs'), main)
}
