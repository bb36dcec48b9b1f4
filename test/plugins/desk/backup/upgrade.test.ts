import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createKernel, type Kernel } from '../../../../kernel/index.js'
import { definePlugin, type Plugin, systemClock } from '../../../../kernel/plugin.js'
import { startUpgraded } from '../../../../plugins/desk/backup/home/upgrade.js'
import { base, daemon, resources, workspaces } from '../../../../plugins/index.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { codeOf, filesBelow } from './world.js'

const notes = (...steps: string[]): Plugin =>
  definePlugin({ name: 'notes', version: '1.0.0' }).surface({
    tables: steps.map((sql, n) => ({ id: `00${n + 1}`, sql })),
  })

const FIRST = 'CREATE TABLE notes_one (id TEXT PRIMARY KEY) STRICT'
const SECOND = 'CREATE TABLE notes_two (id TEXT PRIMARY KEY) STRICT'
const BROKEN = 'CREATE TABLE others_three (id TEXT PRIMARY KEY) STRICT'

interface World {
  home: string
  log: string[]
  critical?: string[]
}

const test = suite<World & { folder: string }>('upgrades')
test.before.each(async context => {
  context.folder = await temporaryFolder('upgrade')
  context.home = path.join(context.folder, 'home')
  context.log = []
})
test.after.each(({ folder }) => rm(folder, { recursive: true, force: true }))

/** Starts a program with these migrations of notes on a home. */
function start({ home, log, critical }: World, ...steps: string[]): Promise<Kernel> {
  const plugin = notes(...steps)
  const plugins = [...base, daemon, resources, workspaces, plugin]
  const options = {
    ...{ home, version: `0.${steps.length}.0`, clock: systemClock(), id: () => `${Math.random()}`, keep: 3 },
    schema: plugins.map(({ name, surface: { tables = [] } }) => [name, tables] as const),
    folder: path.join(home, 'backups'),
    log: (_: string, text: string) => log.push(text),
  }
  return startUpgraded(options, locked =>
    createKernel({ home, plugins, locked, env: { HOME: home }, critical: critical ?? [] }),
  )
}

/** What a start is refused with. */
async function refusal(work: Promise<Kernel>): Promise<Error & { code: string; next: string }> {
  try {
    await (await work).close()
  } catch (error) {
    return error as Error & { code: string; next: string }
  }
  throw new Error('it started')
}

const backupsIn = async (home: string): Promise<string[]> =>
  (await filesBelow(path.join(home, 'backups')).catch(() => [])).filter(name => name.endsWith('.tar'))

test('the first start of a version with another schema makes a backup, and later starts do not', async world => {
  await (await start(world, FIRST)).close()
  assert.equal([await backupsIn(world.home), world.log], [[], []])
  for (const _ of [1, 2]) {
    await (await start(world, FIRST, SECOND)).close()
    const [only, ...others] = await backupsIn(world.home)
    assert.match(`${only}`, /-upgrade\.tar$/)
    assert.equal([others, world.log.length], [[], 1])
    assert.ok(world.log[0]?.includes(`${only}`))
  }
})

test('a database that is ahead is refused with its version', async world => {
  await (await start(world, FIRST)).close()
  await (await start(world, FIRST, SECOND)).close()
  const error = await refusal(start({ ...world, critical: ['notes'] }, FIRST))
  assert.is(error.code, 'schema_ahead')
  assert.match(error.message, /migration 002 of notes/)
  assert.match(error.message, /svc 0\.2\.0 ran this home last, and this is svc 0\.1\.0/)
  // Where the daemon runs without that plugin, its log says it, and each later start does so again.
  for (const _ of [1, 2]) {
    world.log.length = 0
    await (await start(world, FIRST)).close()
    assert.ok(
      world.log.some(line => /notes cannot read its tables; svc 0\.2\.0 ran this home last/.test(line)),
      world.log.join(),
    )
  }
})

test('a failed migration leaves the database unchanged, and the previous version starts', async world => {
  await (await start(world, FIRST)).close()
  const error = await refusal(start(world, FIRST, SECOND, BROKEN))
  assert.is(error.code, 'upgrade_failed')
  const [file] = await backupsIn(world.home)
  for (const part of ['migration 003 of notes', `${file}`]) assert.ok(error.message.includes(part), error.message)
  const again = await start(world, FIRST)
  assert.equal(
    again.host.plugins().filter(({ state }) => state.status === 'failed'),
    [],
  )
  await again.close()
})

test('a moved home starts; a copy beside its original does not, and names the next step', async world => {
  await (await start(world, FIRST)).close()
  const moved = path.join(world.folder, 'moved')
  await rename(world.home, moved)
  await (await start({ ...world, home: moved }, FIRST)).close()
  const copy = path.join(world.folder, 'copy')
  await cp(moved, copy, { recursive: true })
  const before = await readFile(path.join(copy, 'svc.db'))
  const refused = await refusal(start({ ...world, home: copy }, FIRST))
  assert.equal([refused.code, refused.next], ['home_copied', 'svc backup create'])
  assert.ok(refused.message.includes(moved), refused.message)
  assert.equal(await readFile(path.join(copy, 'svc.db')), before)
  await (await start({ ...world, home: moved }, FIRST)).close()
  await rm(moved, { recursive: true })
  await (await start({ ...world, home: copy }, FIRST)).close()
  // Another home in the place of the one that was moved away is no original.
  await (await start({ ...world, home: moved }, FIRST)).close()
  await (await start({ ...world, home: copy }, FIRST)).close()
})

test('no daemon starts in a home with an unfinished restore', async world => {
  await mkdir(world.home)
  await writeFile(path.join(world.home, 'restoring.json'), '{"from":"x"}')
  assert.is(await codeOf(start(world, FIRST)), 'restore_unfinished')
})

test.run()
