import assert from 'node:assert/strict'
import { messageOf, type Plugin, type PluginKernel, within } from '../kernel/plugin.js'
import { surfaceProblems } from '../plugins/delivery/extensions/authoring/surface-problems.js'
import { Checks } from '../plugins/desk/daemon/api.js'
import { replacementProblems } from './judge.js'

/** Milliseconds for a probe of the doctor to answer. */
const CHECK_MS = 5000

/** Something that can be loaded and unloaded, and a function that lists its traces. */
export interface Subject<T> {
  load(): Promise<unknown>
  unload(): Promise<unknown>
  look(): Promise<T>
}

/**
 * Loads and unloads a subject twice; it must be unloaded before and is afterwards. Nothing may be left behind, and the second load
 * must give the same traces as the first.
 * @returns the traces while it was loaded
 * @throws AssertionError with the differences
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

/** A plugin's surface is describable, and the plugin requires the services that it taps. @throws AssertionError */
export function describesItself(plugin: Plugin): void {
  assert.deepEqual(surfaceProblems(plugin), [])
}

/** The modules of a plugin's commands load, and each has a function `run`. @throws AssertionError */
export async function commandsLoad({ surface: { commands = [] } }: Pick<Plugin, 'surface'>): Promise<void> {
  for (const { path, load } of commands) {
    const { run } = await load().catch(error =>
      assert.fail(`the module of the command ${path} does not load: ${messageOf(error)}`),
    )
    assert.equal(typeof run, 'function', `the module of the command ${path} exports no function run`)
  }
}

/**
 * A replacement has everything of its original that others rely on: routes with their inputs, kinds, events, settings, registries.
 * @throws AssertionError that lists the missing parts
 */
export function servesAsMuchAs(replaced: Plugin, plugin: Pick<Plugin, 'surface' | 'provides'>): void {
  assert.deepEqual(replacementProblems({ ...plugin, replaces: replaced.name }), [])
  assert.deepEqual(untakenBy(plugin, replaced), [])
}

/** Members of queries and bodies that routes of the original accept and those of its replacement do not. */
function untakenBy({ surface }: Pick<Plugin, 'surface'>, replaced: Plugin): string[] {
  const plainPath = ({ method, path }: Asking) => `${method} ${path.replace(/\{[^}]+\}/g, '{}')}`
  const own = new Map((surface.routes ?? []).map(route => [plainPath(route), route]))
  return (replaced.surface.routes ?? []).flatMap(route => {
    const its = own.get(plainPath(route))
    if (!its) return []
    return (['query', 'body'] as const).flatMap(at => {
      const original = membersOf(its[at])
      const missing = membersOf(route[at])?.filter(name => !original?.includes(name)) ?? []
      return missing.map(name => `${route.method} ${route.path} takes no ${name} in its ${at}`)
    })
  })
}

type Asking = { readonly method: string; readonly path: string }

/** Names of the members of a schema of an object; undefined for any other schema. */
function membersOf(schema: unknown): string[] | undefined {
  const { entries, pipe } = Object(schema) as { entries?: object; pipe?: readonly unknown[] }
  return entries ? Object.keys(entries) : pipe?.map(membersOf).find(names => names !== undefined)
}

/** Every probe of the doctor, or of one plugin, answers in time. @throws AssertionError @returns their number */
export async function answersInTime(kernel: PluginKernel, plugin?: string): Promise<number> {
  const checks = kernel.collect(Checks).filter(({ owner }) => plugin === undefined || owner === plugin)
  for (const { owner, entry } of checks) {
    const items = await within(kernel.clock, CHECK_MS, entry.run(kernel.scope.signal))
    assert.ok(Array.isArray(items), `${owner} ${entry.id} answers with no list`)
  }
  return checks.length
}
