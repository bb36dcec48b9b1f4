import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { runCli } from './fake-daemon.js'

const script = async (shell: string) => (await runCli(tmpdir(), ['completion', shell])).stdout

/** What bash offers for a line with the cursor at its end. */
function complete(code: string, line: string): string[] {
  const words = line.split(' ')
  const call = `COMP_WORDS=(${words.map(word => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _svc; echo "\${COMPREPLY[*]}"`
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-c', `${code}\n${call}`], { encoding: 'utf8' })
  assert.is(status, 0, stderr)
  return stdout.trim().split(' ').filter(Boolean)
}

test('bash completes commands, options and known values', async () => {
  const code = await script('bash')
  assert.equal(complete(code, 'svc th'), ['thing'])
  assert.equal(complete(code, 'svc thing l'), ['list'])
  assert.equal(complete(code, 'svc thing parts '), ['list'])
  assert.equal(complete(code, 'svc thing list --st'), ['--state'])
  assert.equal(complete(code, 'svc thing list --state '), ['open', 'closed'])
  assert.equal(complete(code, 'svc thing list --state open --li'), ['--limit'])
  assert.equal(complete(code, 'svc thing list -o t'), ['toon'])
  assert.equal(complete(code, 'svc thing parts list t1 --f'), ['--follow'])
  assert.equal(complete(code, 'svc daemon st'), ['start', 'stop'])
  assert.equal(complete(code, 'svc nope '), complete(code, 'svc '))
})

test('zsh and fish scripts parse in these shells and name every command', async () => {
  for (const shell of ['zsh', 'fish']) {
    const code = await script(shell)
    for (const word of ['thing', 'parts', 'state', 'closed', 'daemon'])
      assert.ok(code.includes(word), `${shell}: ${word}`)
    const folder = mkdtempSync(join(tmpdir(), 'svc-completion-'))
    const file = join(folder, 'script')
    writeFileSync(file, code)
    const { error, status, stderr } = spawnSync(shell, ['-n', file], { encoding: 'utf8' })
    rmSync(folder, { recursive: true })
    if (!error) assert.is(status, 0, stderr)
  }
})

test('an unknown shell is refused', async () => {
  assert.is((await runCli(tmpdir(), ['completion', 'tcsh'])).code, 2)
})

test.run()
