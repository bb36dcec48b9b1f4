import { cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { operator } from '../../../kernel/plugin.js'
import { readFolder } from '../../../plugins/delivery/installer/source/folder.js'
import { treeDigest } from '../../../plugins/delivery/installer/source/tree.js'
import { files, scene } from '../../plugins/delivery/installer/scene.js'
import { manifest } from '../../plugins/delivery/installer/tarball.js'
import { chance } from '../library/chance.js'
import { inFolder, runChild } from '../store/processes.js'
import { type Operation, operations, perform } from './operations.js'

/** One kill: of an operation at a call of the disk; with `again`, of the start behind it at one of its calls as well. */
export interface Kill {
  readonly operation: Operation
  readonly at: number
  readonly again: number
}

/** The homes that operations begin with, and what they are about. */
export class Kills {
  readonly #digests: Record<'old' | 'new', string> = { old: '', new: '' }

  private constructor(
    private readonly folder: string,
    private readonly script: string,
  ) {}

  /** Runs `use` with everything that a kill needs, which is gone afterwards. */
  static with<T>(use: (kills: Kills) => Promise<T>): Promise<T> {
    return inFolder(folder =>
      withChild('child.ts', async script => {
        const kills = new Kills(folder, script)
        await kills.#prepare()
        return use(kills)
      }),
    )
  }

  /** Every call of every operation, and `more` where the next start is killed as well. */
  async all(seed: number, more: number): Promise<Kill[]> {
    const single: Kill[] = []
    for (const operation of operations) {
      const steps = await this.#inHome(operation, async home => {
        const { lines, errors } = await runChild(this.script, [home, operation, this.#source, 0])
        const steps = Number(lines.at(-1))
        if (!(steps > 0)) throw new Error(`${operation} fails without a kill: ${errors}`)
        return steps
      })
      single.push(...Array.from({ length: steps }, (_, i) => ({ operation, at: i + 1, again: 0 })))
    }
    const dice = chance('kills', seed)
    const double = Array.from({ length: more }, () => ({ ...dice.of(single), again: 1 + dice.int(6) }))
    return [...single, ...double]
  }

  /** What is wrong after a kill and the next start; undefined when all is as before or as wanted. */
  async run({ operation, at, again }: Kill, mutant = ''): Promise<string | undefined> {
    return this.#inHome(operation, async home => {
      const { signal, errors } = await runChild(this.script, [home, operation, this.#source, at, mutant])
      if (signal !== 'SIGKILL') return `it was not killed: ${errors.slice(0, 500)}`
      if (again > 0) await runChild(this.script, [home, 'start', '', again, mutant])
      return this.#check(home, operation)
    })
  }

  async #check(home: string, operation: Operation): Promise<string | undefined> {
    const running = await scene({}, { home })
    try {
      const { installer } = running
      const found = await this.#state(home, installer.provenance('demo')?.treeDigest)
      const before = operation === 'install' ? 'absent' : 'old'
      const after = { install: 'new', update: 'new', remove: 'absent' }[operation]
      if (found !== before && found !== after) return `${found}, neither ${before} nor ${after}`
      const staged = await readdir(path.join(home, 'extensions/.staging'))
      if (staged.length > 0) return `${staged.length} folders are left in .staging`
      const intents = running.holder.kernel.db.all('SELECT name FROM extensions_intent')
      if (intents.length > 0) return 'an intent is left'
      // Once, not twice and not for nothing.
      const told = this.#events(running.holder.kernel.db, operation)
      if (told !== (found === after ? 1 : 0)) return `${found}, of which ${told} events tell`
      if (found === after) return undefined
      await perform(installer, operation, this.#source, operator)
      const then = await this.#state(home, installer.provenance('demo')?.treeDigest)
      return then === after ? undefined : `${then} after it was done again, not ${after}`
    } finally {
      await running.close()
    }
  }

  #events(db: { all<T>(sql: string, params: string[]): T[] }, operation: Operation): number {
    const name = { install: 'install.completed', update: 'update.completed', remove: 'removed' }[operation]
    return db.all('SELECT seq FROM kernel_event WHERE name = ?', [`extension.${name}`]).length
  }

  /** Folder and provenance, if they agree. */
  async #state(home: string, provenance: string | undefined): Promise<string> {
    const there = (await readdir(path.join(home, 'extensions'))).includes('demo')
    const digest = there ? treeDigest(await readFolder(path.join(home, 'extensions/demo'))) : undefined
    if (digest !== provenance) return `half: the folder is ${digest}, its provenance ${provenance}`
    if (digest === undefined) return 'absent'
    return Object.entries(this.#digests).find(([, known]) => known === digest)?.[0] ?? `something else, ${digest}`
  }

  get #source(): string {
    return path.join(this.folder, 'source')
  }

  async #prepare(): Promise<void> {
    const texts = { 'extension.toml': manifest(), 'docs/one': 'one' }
    await files(this.#source, texts)
    const empty = await scene({}, { home: path.join(this.folder, 'empty') })
    await empty.close()
    await cp(path.join(this.folder, 'empty'), path.join(this.folder, 'full'), { recursive: true })
    const full = await scene({}, { home: path.join(this.folder, 'full') })
    await full.installer.install({ path: this.#source }, operator)
    await full.holder.kernel.db.durable()
    await full.close()
    this.#digests.old = treeDigest(await readFolder(this.#source))
    await files(this.#source, { 'extension.toml': manifest('demo', '2.0.0'), 'docs/two': 'two' })
    await rm(path.join(this.#source, 'docs/one'))
    this.#digests.new = treeDigest(await readFolder(this.#source))
  }

  async #inHome<T>(operation: Operation, use: (home: string) => Promise<T>): Promise<T> {
    return inFolder(async folder => {
      const home = path.join(folder, 'home')
      await cp(path.join(this.folder, operation === 'install' ? 'empty' : 'full'), home, { recursive: true })
      return use(home)
    })
  }
}

/** The child as one file, so that a start is cheap; below the project, so that its packages are found. */
export async function withChild<T>(entry: string, use: (script: string) => Promise<T>): Promise<T> {
  const here = path.dirname(fileURLToPath(import.meta.url))
  const folder = await mkdtemp(path.join(here, '../../../node_modules/.svc-prove-'))
  try {
    const outfile = path.join(folder, 'child.mjs')
    const options = { bundle: true, platform: 'node', format: 'esm', packages: 'external', logLevel: 'error' } as const
    await build({ entryPoints: [path.join(here, entry)], outfile, ...options })
    return await use(outfile)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
