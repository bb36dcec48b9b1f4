import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../../../../kernel/plugin.js'
import { syntaxErrorIn } from '../../../../../plugins/delivery/extensions/load/error-location.js'
import type { ProcessExit, SpawnRequest } from '../../../../../plugins/platform/processes/api.js'
import { temporaryFolder } from '../../../../harness/kernel.js'

/** Starts what is asked for; what it prints arrives only after its end was told. */
async function spawnLate({ argv: [command = '', ...args], cwd, env }: SpawnRequest) {
  const child = spawn(command, args, { cwd, env, stdio: 'pipe' })
  const stderr = new PassThrough()
  const exited = once(child, 'close').then(([code, signal]): ProcessExit => ({ code, signal }))
  const output = child.stderr.toArray()
  void exited.then(() => setTimeout(async () => stderr.end(Buffer.concat(await output)), 20))
  const { pid = 0, stdin, stdout } = child
  const end = () => exited.then(() => {})
  return { pid, startTime: '', stdin, stdout, stderr, exited, alive: false, stop: end, kill: () => {} }
}

test('a syntax error has a position also when its process ends before its output is read', async () => {
  const root = await temporaryFolder('places')
  const folder = path.join(root, 'copy')
  await mkdir(folder)
  await writeFile(path.join(folder, 'main.js'), 'export const fine = 1\n')
  await writeFile(path.join(folder, 'text.js'), '\nexport const = \n')
  await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }\n')
  const found = await syntaxErrorIn({ clock: systemClock(), spawn: spawnLate }, { folder, root })
  assert.match(found ?? '', /^.*\/text\.js:2: SyntaxError: /)
  assert.not.match(found ?? '', /copy/, 'its author has it elsewhere')
  await rm(root, { recursive: true })
})

test.run()
