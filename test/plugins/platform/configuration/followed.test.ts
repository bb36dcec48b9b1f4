import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../../../kernel/clock.js'
import type { Log, Scope } from '../../../../kernel/plugin.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import { Follower } from '../../../../plugins/platform/configuration/follower.js'
import type { FileSource } from '../../../../plugins/platform/configuration/source.js'
import { textFile } from '../../../../plugins/platform/files/api.js'
import resources from '../../../../plugins/platform/resources/index.js'
import { hostileFiles, removeHostile } from '../../../fixtures/hostile-files.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'

const LONGEST_MS = 60_000

/** A kernel on a home with a config.json, and what doctor tells of it. */
async function followed(work: (file: string, taken: () => Promise<string>) => Promise<void>) {
  const home = await temporaryFolder('followed')
  const file = path.join(home, 'config.json')
  await writeFile(file, '{}')
  const host = await boot({ home, plugins: [daemon, resources], listen: ['socket'] })
  const taken = async () => JSON.stringify((await host.request('GET', '/api/doctor?only=config')).body)
  await work(file, taken)
  await host.close()
  await rm(home, { recursive: true, force: true })
}

async function until(look: () => Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + LONGEST_MS
  let found = await look()
  while (!found && Date.now() < end) {
    await new Promise(resolve => setTimeout(resolve, 50))
    found = await look()
  }
  assert.ok(found, `waited in vain: ${what}`)
}

/** Saves a text that only a follower that still follows tells of, by a name that no other save has. */
async function isFollowed(file: string, name: string, taken: () => Promise<string>) {
  await writeFile(file, JSON.stringify({ [name]: 1 }))
  await until(async () => (await taken()).includes(name), `${name} is told of`)
  await writeFile(file, JSON.stringify({ [`${name}_again`]: 1 }))
  await until(async () => (await taken()).includes(`${name}_again`), `${name}, once more`)
}

test('config.json is followed again after another kind of file lay at its path', async () => {
  const passed = hostileFiles.map(hostile =>
    followed(async (file, taken) => {
      await isFollowed(file, 'before', taken)
      await rm(file)
      const end = await hostile.put(file)
      if (hostile.refused !== 'none' && hostile.refused !== 'missing')
        await until(async () => /config\.json/.test(await taken()), `${hostile.name} is told of`)
      end()
      removeHostile(file)
      await isFollowed(file, `after ${hostile.name}`, taken)
    }),
  )
  await Promise.all(passed)
})

test('a config.json deleted and rewritten at once, as by git, is followed', () =>
  followed(async (file, taken) => {
    for (const name of ['one', 'two', 'three']) {
      await isFollowed(file, name, taken)
      await rm(file)
    }
  }))

test('a config.json that is a symbolic link is followed at both ends', () =>
  followed(async (file, taken) => {
    const folder = path.join(path.dirname(file), 'dotfiles')
    await mkdir(folder)
    const [one, other] = [path.join(folder, 'one.json'), path.join(folder, 'other.json')]
    await writeFile(other, '{"elsewhere":1}')
    await rm(file)
    await writeFile(one, '{}')
    await symlink(one, file)
    await isFollowed(one, 'linked', taken)
    await rm(file)
    await symlink(other, file)
    await until(async () => (await taken()).includes('elsewhere'), 'the other is read')
  }))

test('a config.json created later is read by an event of its folder, without a look on a timer', async () => {
  const home = await temporaryFolder('followed')
  const where = path.join(home, 'config.json')
  const taken: string[] = []
  const waits: number[] = []
  const clock = { ...systemClock(), sleep: async (ms: number) => void waits.push(ms) }
  const scope = { signal: new AbortController().signal } as Scope
  const source = { where, file: textFile(where), text: '', problem: undefined }
  const take = (text: string) => taken.push(text)
  const silent = { warn: assert.unreachable, error: assert.unreachable, info: assert.unreachable } as unknown as Log
  const follower = new Follower({ ...source, take } as unknown as FileSource, () => [], clock, scope, silent)
  const end = new AbortController()
  const following = follower.follow(end.signal)
  await until(async () => taken.length > 0, 'the first read')
  await writeFile(path.join(home, 'daemon.json'), '{}')
  await writeFile(where, '{"later":1}')
  await until(async () => taken.at(-1) === '{"later":1}', 'the new file is read')
  assert.not(waits.includes(1000), `it waited ${waits} ms`)
  end.abort()
  await following
  await rm(home, { recursive: true, force: true })
})

test.run()
