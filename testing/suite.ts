import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { messageOf } from '../kernel/plugin.js'
import { inTree } from '../plugins/index.js'
import { answersAlike, behaviours } from './behaviour.js'
import { answersInTime, commandsLoad, describesItself, leavesNothing, servesAsMuchAs } from './contract.js'
import { StartedExtension } from './extension.js'
import { Leaks } from './leaks.js'
import { tracesOf } from './traces.js'

/** Registers the tests (`node:test`) of the contract for extensions, for the extension in a folder. */
export function extensionContract(folder: string): void {
  describe('contract of extensions', () => {
    let started: StartedExtension | undefined
    const leaks = new Leaks()
    after(async () => {
      leaks.end()
      await started?.close()
      // Leaked resources would keep this process alive; the tests have already reported them.
      setTimeout(() => process.exit(), EXIT_MS).unref()
    })

    test('the extension loads alone', async () => {
      started = await StartedExtension.start(folder)
      assert.deepEqual(faultsOf(started), [])
    })

    /** A test that needs the loaded extension. */
    const then = (name: string, inspect: (extension: StartedExtension) => Promise<void>) =>
      test(name, async t => {
        if (started) await inspect(started)
        else t.skip('it does not load')
      })

    then('routes and commands are describable', async extension => {
      const { code } = installedOf(extension)
      if (code) describesItself((await import(pathToFileURL(code.module).href)).default)
    })

    then('the modules of the commands load', async extension => {
      const { code } = installedOf(extension)
      if (code) await commandsLoad((await import(pathToFileURL(code.module).href)).default)
    })

    then('a replacement has the services, hooks and routes of its plugin', async extension => {
      const { code, manifest } = installedOf(extension)
      const replaced = inTree.find(({ name }) => name === manifest.replaces)
      if (code && replaced) servesAsMuchAs(replaced, (await import(pathToFileURL(code.module).href)).default)
    })

    /** The plugin that the extension replaces. */
    const replacedBy = (extension: StartedExtension) => {
      const { code, manifest } = installedOf(extension)
      return code && inTree.find(({ name }) => name === manifest.replaces)
    }

    then('the routes of a replacement answer like those of its plugin', async extension => {
      const replaced = replacedBy(extension)
      if (!replaced) return
      const original = await StartedExtension.plain()
      try {
        await answersAlike(replaced, original, extension)
      } finally {
        await original.close()
      }
    })

    then('a replacement passes the behaviour checks of its plugin', async extension => {
      for (const { name, check } of behaviours[replacedBy(extension)?.name ?? ''] ?? [])
        await check(extension).catch(error => {
          throw new Error(`${name}: ${messageOf(error)}`, { cause: error })
        })
    })

    then('the doctor probes of the extension answer in time', async extension => {
      await extension.time.during(answersInTime(extension.inside, extension.name))
    })

    then('unloading leaves nothing behind, and loading again restores it', async extension => {
      const { kernel, inside, time, name } = extension
      const surfaces = [...inTree.map(({ surface }) => surface), installedOf(extension).code?.surface ?? {}]
      const registries = surfaces.flatMap(({ registries: entries = [] }) => entries.map(({ to }) => to))
      const post = async (verb: 'enable' | 'disable') => {
        const { status, body } = await extension.request('POST', `/api/extensions/${name}/${verb}`)
        assert.equal(status, 200, body?.error)
      }
      /**
       * Pending timers of the kernel while the extension is unloaded. Fewer are allowed, since timers of others expire meanwhile.
       */
      let waiting = Number.POSITIVE_INFINITY
      const unload = async () => {
        await post('disable')
        for (let passed = 0; passed < PASSING_MS; passed += SETTLED_MS) {
          await time.pass(SETTLED_MS)
          if (time.clock.pending <= waiting) break
        }
        const { pending } = time.clock
        assert.ok(pending <= waiting, `unloaded, it leaves timers behind: ${pending} wait, and ${waiting} did before`)
        waiting = pending
      }
      const load = async () => {
        await post('enable')
        await extension.untilRunning()
      }
      const readTraces = async () => {
        // Routes and changed folders take effect some time after a change.
        await time.pass(SETTLED_MS)
        return await tracesOf(kernel, inside, registries)
      }
      await unload()
      const failed = kernel.host.plugins().filter(({ state }) => state.status === 'failed')
      assert.deepEqual(failed, [], 'once it is disabled, what it replaced does not run')
      const leftovers = await time.during(leaks.left())
      assert.ok(leftovers.length === 0, `it leaves behind: ${leftovers.join('; ')}`)
      await leavesNothing({ load, unload, look: readTraces })
      assert.deepEqual(faultsOf(extension), [])
      await load()
    })
  })
}

/** Milliseconds for this process to report the tests and to end by itself. */
const EXIT_MS = 1000
/** Milliseconds after which the routes of a change are served and changed files have been read. */
const SETTLED_MS = 1000
/** Milliseconds after which timers that other plugins set because of the extension have expired. */
const PASSING_MS = 15_000

const faultsOf = ({ kernel, name }: StartedExtension) => kernel.host.faults().filter(({ owner }) => owner === name)

function installedOf({ extensions, name }: StartedExtension) {
  const found = extensions.installed().find(installed => installed.name === name)
  assert.ok(found, `${name} is not installed`)
  return found
}
