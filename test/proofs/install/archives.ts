import { mkdir, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { extract } from 'tar'
import { Fault, operator } from '../../../kernel/plugin.js'
import { scene } from '../../plugins/delivery/installer/scene.js'
import { inFolder } from '../store/processes.js'
import { type Make, sample } from './corpus.js'

/** What became of the archives; `wrong` says which did harm, at most ten times. */
export interface Corpus {
  readonly installed: Readonly<Record<Make, number>>
  readonly refused: ReadonlyMap<string, number>
  readonly wrong: readonly string[]
}

/** Deep enough that nothing which climbs out of the home leaves the arena. */
const HOME = 'a/b/c/d/e/f/home'
const CANARIES = ['canary/one', 'a/canary/one', 'a/b/c/canary/one', 'a/b/c/d/e/canary/one', 'a/b/c/d/e/f/canary/one']

/** Installs every archive of the corpus and compares the world around the home, byte by byte, before and after. */
export function installAll(seed: number, count: number, told: (done: number) => void): Promise<Corpus> {
  return inFolder(async arena => {
    await layOut(arena)
    const home = path.join(arena, HOME)
    const { installer, close } = await scene({}, { home })
    const archive = path.join(arena, 'archive.tar.gz')
    const installed: Record<Make, number> = { harmless: 0, hostile: 0, mutated: 0, damaged: 0 }
    const refused = new Map<string, number>()
    const wrong: string[] = []
    const complain = (index: number, make: Make, what: string) => {
      if (wrong.length < 10) wrong.push(`archive ${index} (${make}): ${what}`)
    }
    await writeFile(archive, '')
    const before = await world(arena)
    for (let index = 0; index < count; index++) {
      const { make, bytes } = sample(seed, index, arena)
      await writeFile(archive, bytes)
      try {
        const { name } = await installer.install({ path: archive }, operator)
        installed[make]++
        const odd = await oddFiles(path.join(home, 'extensions', name))
        if (odd.length > 0) complain(index, make, `${odd.join(', ')} is no plain file`)
        const { matches } = await installer.verify(name, operator)
        if (!matches) complain(index, make, 'what was installed is not what was judged')
        await installer.remove(name, {}, operator)
      } catch (error) {
        const reason = error instanceof Fault ? (error.details?.reason ?? error.code) : 'no fault'
        refused.set(reason, (refused.get(reason) ?? 0) + 1)
        if (!(error instanceof Fault)) complain(index, make, `threw ${error instanceof Error ? error.stack : error}`)
        if (make === 'harmless') complain(index, make, `was refused: ${(error as Error).message}`)
      }
      const left = (await readdir(path.join(home, 'extensions'), { recursive: true })).filter(
        name => name !== '.staging',
      )
      if (left.length > 0) complain(index, make, `left ${left.slice(0, 3).join(', ')}`)
      const after = await world(arena)
      if (after !== before) complain(index, make, `escaped:\n${difference(before, after)}`)
      told(index + 1)
    }
    await close()
    return { installed, refused, wrong }
  })
}

/** How many of the archives escape from a reader that believes all they say: a corpus that harms nobody proves nothing. */
export function believeAll(seed: number, count: number): Promise<number> {
  return inFolder(async arena => {
    let escaped = 0
    for (let index = 0; index < count; index++) {
      const { make, bytes } = sample(seed, index, arena)
      if (make === 'damaged' || make === 'harmless') continue
      await rm(arena, { recursive: true, force: true })
      await layOut(arena)
      const before = await world(arena)
      const cwd = path.join(arena, HOME, 'extensions/.staging/x/new')
      await mkdir(cwd, { recursive: true })
      const file = path.join(arena, HOME, 'archive.tar.gz')
      await writeFile(file, bytes)
      try {
        extract({ file, cwd, preservePaths: true, noChmod: true, sync: true, filter: staysIn(arena, cwd) })
      } catch {
        // What it did before it gave up counts.
      }
      if ((await world(arena)) !== before) escaped++
    }
    return escaped
  })
}

/**
 * Whether an entry and what it links to lie in the arena: beyond it even the reader that believes all writes nothing, for there is
 * the machine. A link with `..` in it may lead elsewhere than its text says, by way of other links.
 */
function staysIn(arena: string, cwd: string) {
  const isIn = (...parts: readonly string[]) => {
    const relative = path.relative(arena, path.resolve(...parts))
    return relative !== '' && relative.split(path.sep)[0] !== '..'
  }
  return (name: string, entry: object): boolean => {
    const { linkpath = '' } = entry as { linkpath?: string }
    if (!isIn(cwd, name)) return false
    return linkpath === '' || (isIn(cwd, path.dirname(name), linkpath) && !linkpath.split(/[\\/]/).includes('..'))
  }
}

async function layOut(arena: string): Promise<void> {
  await mkdir(path.join(arena, HOME), { recursive: true })
  for (const canary of CANARIES) {
    await mkdir(path.dirname(path.join(arena, canary)), { recursive: true })
    await writeFile(path.join(arena, canary), `canary of ${canary}`)
  }
}

/** Everything around the home and the archive: names, kinds, modes, links and bytes. */
async function world(arena: string): Promise<string> {
  const seen: string[] = []
  const visit = async (folder: string): Promise<void> => {
    for (const entry of await readdir(path.join(arena, folder), { withFileTypes: true })) {
      const relative = path.join(folder, entry.name)
      if (relative === HOME || relative === 'archive.tar.gz') continue
      const full = path.join(arena, relative)
      if (entry.isDirectory()) await visit(relative)
      const { mode, nlink } = entry.isSymbolicLink() ? { mode: 0, nlink: 0 } : await stat(full)
      const held = entry.isFile() ? await readFile(full, 'latin1') : entry.isSymbolicLink() ? await readlink(full) : ''
      seen.push(`${relative} ${mode} ${entry.isDirectory() ? '' : nlink} ${held}`)
    }
  }
  await visit('')
  return seen.sort().join('\n')
}

async function oddFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter(entry => !entry.isFile() && !entry.isDirectory()).map(({ name }) => name)
}

function difference(before: string, after: string): string {
  const known = new Set(before.split('\n'))
  return after
    .split('\n')
    .filter(line => !known.has(line))
    .slice(0, 5)
    .join('\n')
}
