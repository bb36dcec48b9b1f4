import assert from 'node:assert/strict'
import { type Plugin, type PluginKernel, within } from '../kernel/index.js'
import { Checks } from '../plugins/daemon/api.js'
import { surfaceProblems } from '../plugins/extensions/authoring/surface-problems.js'

/** Milliseconds in which a probe of the doctor has to answer. */
const CHECK_MS = 5000

/** What comes and goes, and how one looks at what it leaves. */
export interface Subject<T> {
  load(): Promise<unknown>
  unload(): Promise<unknown>
  look(): Promise<T>
}

/**
 * Loads, unloads and loads again what is not loaded now, and leaves it unloaded: what is left behind is nothing, and a
 * second life is like the first.
 * @returns how it looked while it was loaded
 * @throws AssertionError, saying what differs
 */
export async function leavesNothing<T>({ load, unload, look }: Subject<T>): Promise<T> {
  const empty = await look()
  await load()
  const full = await look()
  await unload()
  assert.deepEqual(await look(), empty, 'unloaded, it leaves something behind')
  await load()
  assert.deepEqual(await look(), full, 'loaded again, it is not as it was')
  await unload()
  assert.deepEqual(await look(), empty, 'unloaded again, it leaves something behind')
  return full
}

/** What is on the surface of a plugin can be told to others, and it requires what it taps. @throws AssertionError */
export function describesItself(plugin: Plugin): void {
  assert.deepEqual(surfaceProblems(plugin), [])
}

/**
 * What takes the place of a plugin serves all of its routes and has all of its kinds: others rely on them.
 * @throws AssertionError that lists what is missing
 */
export function servesAsMuchAs(replaced: Plugin, { surface }: Pick<Plugin, 'surface'>): void {
  const namesOf = ({ routes = [], kinds = [] }: Plugin['surface']) => [
    ...routes.map(({ method, path }) => `route ${method} ${path.replace(/\{[^}]+\}/g, '{}')}`),
    ...kinds.map(({ name }) => `kind ${name}`),
  ]
  const has = new Set(namesOf(surface))
  const missing = namesOf(replaced.surface).filter(name => !has.has(name))
  assert.ok(missing.length === 0, `in the place of ${replaced.name} it lacks: ${missing.join(', ')}`)
}

/** Every probe of the doctor, or those of one plugin, answers in time. @throws AssertionError @returns how many there are */
export async function answersInTime(kernel: PluginKernel, plugin?: string): Promise<number> {
  const checks = kernel.collect(Checks).filter(({ owner }) => plugin === undefined || owner === plugin)
  for (const { owner, entry } of checks) {
    const items = await within(kernel.clock, CHECK_MS, entry.run(kernel.scope.signal))
    assert.ok(Array.isArray(items), `${owner} ${entry.id} answers with no list`)
  }
  return checks.length
}
